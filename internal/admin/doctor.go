package admin

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/wiring"
)

// Diagnosis is the result of the doctor for a coordination database.
type Diagnosis struct {
	// URL is without secrets.
	URL     string `json:"url"`
	Backend string `json:"backend"`
	// At is the database's clock.
	At time.Time `json:"at"`
	// Problems, Warnings and Notes count the findings.
	Problems int              `json:"problems"`
	Warnings int              `json:"warnings"`
	Notes    int              `json:"notes"`
	Findings []doctor.Finding `json:"findings"`
}

// probeTimeout bounds what the doctor asks a sink or a lock provider.
const probeTimeout = 10 * time.Second

// Doctor examines the coordination database of the configuration, and the place
// that a node with this configuration would have in it, and asks the sinks and the lock
// providers; [Validate] asks the sources.
// It reads only, and needs no schema of ours: there may be only Java nodes. watch
// is how long INT_LOCK is watched for writes. The error says why nothing can be
// examined, see [wiring.FaultOf]; findings are no error.
func Doctor(ctx context.Context, cfg *config.Config, watch time.Duration) (Diagnosis, error) {
	d := Diagnosis{URL: cfg.Database.URL.String()}
	if cfg.Database.URL.Dialect() == config.SQLite {
		if _, err := os.Stat(cfg.Database.URL.Path()); err != nil {
			if os.IsNotExist(err) {
				return d, absent(cfg)
			}
			return d, fmt.Errorf("look at %s: %w", cfg.Database.URL.Path(), err)
		}
	}
	found, err := examine.Run(ctx, examine.Options{URL: cfg.Database.URL.Reveal(), Watch: watch})
	if err != nil {
		// SQLite makes files beside its own even to read.
		return d, cmp.Or(mayWriteDatabase(cfg), err)
	}
	d.Backend, d.At = found.Backend, found.At
	d.Findings = doctor.Judge(found, expectation(cfg))
	for _, f := range probe(ctx, cfg, probeTimeout) {
		severity := doctor.Problem
		if !f.isError() {
			severity = doctor.Warning
		}
		d.Findings = append(d.Findings, doctor.Finding{Severity: severity, Check: f.Subject, Saw: f.Text})
	}
	count := func(s doctor.Severity) int {
		return len(fn.Only(d.Findings, func(f doctor.Finding) bool { return f.Severity == s }))
	}
	d.Problems, d.Warnings, d.Notes = count(doctor.Problem), count(doctor.Warning), count(doctor.Note)
	return d, nil
}

// expectation is a node's place in a cluster according to the configuration.
func expectation(cfg *config.Config) doctor.Expectation {
	shared := cfg.Scheduler.Lock
	want := doctor.Expectation{ConfigHash: cfg.Hash(), AutoMigrate: cfg.Database.AutoMigrate, TTL: shared.TTL}
	for _, t := range cfg.Types() {
		want.Locks = append(want.Locks, doctor.Lock{
			Name: t.LockName, Region: t.Region, KeyFormat: lockdb.KeyFormat(t.KeyFormat), TTL: t.TTL,
			Type: t.Name, Interval: t.Interval, Enabled: t.Enabled && cfg.Scheduler.Enabled,
			Suspended: func(now time.Time) bool { _, within := t.NotBetween.Until(now); return within },
		})
	}
	other := func(name string) doctor.Lock {
		return doctor.Lock{Name: name, Region: shared.Region, KeyFormat: lockdb.KeyFormat(shared.KeyFormat), TTL: shared.TTL}
	}
	want.Locks = append(want.Locks, other(wiring.JanitorLock))
	want.Locks = append(want.Locks, fn.Each(cfg.Sinks, func(s config.Sink) doctor.Lock { return other(wiring.SinkLock(s.ID)) })...)
	return want
}
