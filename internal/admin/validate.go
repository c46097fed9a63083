package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// Severity says whether a finding stands in the way.
type Severity string

// The severities.
const (
	// SeverityError stands in the way.
	SeverityError Severity = "error"
	// SeverityWarning works, but worse than it could.
	SeverityWarning Severity = "warning"
)

// Subjects of findings that are about no observer and no source.
const (
	subjectNode     = "node"
	subjectDatabase = "database"
)

// Finding is one result of the check of the databases.
type Finding struct {
	Severity Severity `json:"severity"`
	// Subject says what it is about, such as "observer warehouse-orders".
	Subject string `json:"subject"`
	// Text describes the fault and its remedy.
	Text string `json:"text"`
	// cause is the fault behind an error.
	cause error
}

func (f Finding) isError() bool { return f.Severity == SeverityError }

func (f Finding) isWarning() bool { return !f.isError() }

// Validation is the result of checking a configuration against the databases.
type Validation struct {
	Database  DatabaseCheck   `json:"database"`
	Observers []ObserverCheck `json:"observers"`
	// LockProviders are what the locks of each other provider have, by its id.
	LockProviders map[string]string `json:"lock_providers,omitempty"`
	// Findings are warnings first, then errors.
	Findings []Finding `json:"findings"`
}

// DatabaseCheck is the coordination database.
type DatabaseCheck struct {
	// URL is without secrets.
	URL       string `json:"url"`
	Reachable bool   `json:"reachable"`
	Schema    Schema `json:"schema"`
	// Locks is what its locks have, in a line.
	Locks string `json:"locks"`
}

// ObserverCheck is one observer and its source.
type ObserverCheck struct {
	ID        string `json:"observer"`
	Source    string `json:"source"`
	Reachable bool   `json:"reachable"`
	// Ready says that a node would poll it.
	Ready bool `json:"ready"`
	// SQL is the statement of a poll without the conversions and length guards of columns,
	// FullSQL the same as it is sent, Plan how the database would run it; empty when they
	// could not be read.
	SQL     string `json:"sql,omitempty"`
	FullSQL string `json:"full_sql,omitempty"`
	Plan    string `json:"plan,omitempty"`
	// Sample are the events of the first rows, Dead those among them that
	// cannot be read.
	Sample []json.RawMessage `json:"sample,omitempty"`
	Dead   []DryDead         `json:"dead_rows,omitempty"`
	// History is nil where there is none, and where it was not counted.
	History *History `json:"history,omitempty"`

	observer config.Observer
	findings []Finding
}

// Err joins the errors among the findings, for [wiring.FaultOf]; nil means that a
// node would work.
func (v Validation) Err() error {
	return errors.Join(fn.Each(fn.Only(v.Findings, Finding.isError), func(f Finding) error {
		return fmt.Errorf("%s: %s: %w", f.Subject, f.Text, f.cause)
	})...)
}

// Ready counts the observers that a node would poll.
func (v Validation) Ready() int {
	return len(fn.Only(v.Observers, func(o ObserverCheck) bool { return o.Ready }))
}

// NotReady are the subjects of the errors that are about no source and no observer:
// "node", "database", the sinks and the lock providers.
func (v Validation) NotReady() (subjects []string) {
	for _, f := range v.Findings {
		own := f.Subject == subjectNode || f.Subject == subjectDatabase || strings.HasPrefix(f.Subject, sinkSubject) || strings.HasPrefix(f.Subject, providerSubject)
		if own && f.isError() && !slices.Contains(subjects, f.Subject) {
			subjects = append(subjects, f.Subject)
		}
	}
	return subjects
}

// Warnings counts the findings that do not stand in the way.
func (v Validation) Warnings() int { return len(fn.Only(v.Findings, Finding.isWarning)) }

// Validate connects to the coordination database, to the source of every enabled
// observer, to every sink and to every lock provider. It creates and changes nothing in them. An account that the nodes
// know to be refused is not tried; one that is refused now is noted nowhere.
func Validate(ctx context.Context, o ValidateOptions) Validation {
	cfg := o.Config
	v := Validation{Database: DatabaseCheck{URL: cfg.Database.URL.String()}, Observers: []ObserverCheck{}, Findings: []Finding{}}
	v.Database.Locks, v.LockProviders = describeLocks(cfg)
	if err := CheckRights(cfg); err != nil {
		v.Findings = append(v.Findings, Finding{SeverityError, subjectNode, err.Error(), err})
	}
	for _, o := range cfg.Observers {
		if o.Enabled {
			v.Observers = append(v.Observers, ObserverCheck{ID: o.ID, Source: o.Source, observer: o})
		}
	}
	op, opened := NewOperator(OperatorOptions{Config: cfg, Logger: o.Logger, ReadOnly: true})
	if opened != nil {
		op = &Operator{cfg: cfg, log: o.Logger, readOnly: true}
	}
	defer op.Close() // It was only read.
	var coordination, probed []Finding
	var work sync.WaitGroup
	work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		coordination = v.Database.check(ctx, op, opened)
	})
	work.Go(func() { probed = probe(ctx, cfg, o.Timeout) })
	looked := look{op: op, sources: op.sources(), sample: o.Sample}
	for i := range v.Observers {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, o.Timeout)
			defer cancel()
			v.Observers[i].check(ctx, looked)
		})
	}
	work.Wait()
	v.Findings = slices.Concat(v.Findings, coordination, probed)
	for i := range v.Observers {
		o := &v.Observers[i]
		o.Ready = !slices.ContainsFunc(o.findings, Finding.isError)
		v.Findings = append(v.Findings, o.findings...)
	}
	v.Findings = onceEach(v.Findings)
	v.Findings = slices.Concat(fn.Only(v.Findings, Finding.isWarning), fn.Only(v.Findings, Finding.isError))
	return v
}

// ValidateOptions describe a validation.
type ValidateOptions struct {
	// Config and Logger are required.
	Config *config.Config
	Logger *slog.Logger
	// Timeout bounds the check of each database.
	Timeout time.Duration
	// Sample is how many of the first rows of each observer are shown as
	// events; 0 reads none, nor counts any.
	Sample int
}

// onceEach drops repeats: each observer of a source meets its faults, and a refused
// session with a text of its own.
func onceEach(findings []Finding) []Finding {
	type fault struct{ subject, text string }
	seen := make(map[fault]bool)
	kept := findings[:0]
	for _, f := range findings {
		met := fault{f.Subject, f.Text}
		if access.NoSession(observer.ClassOf(f.cause)) {
			met.text = ""
		}
		if !seen[met] {
			kept = append(kept, f)
		}
		seen[met] = true
	}
	return kept
}

// check asks the coordination database for its schema. opened is why it cannot be
// opened, if that is so.
func (d *DatabaseCheck) check(ctx context.Context, op *Operator, opened error) []Finding {
	cfg, err := op.cfg, opened
	if mayWriteDatabase(cfg) != nil {
		return nil // CheckRights has said so.
	}
	if err == nil {
		d.Schema, err = op.Schema(ctx)
	}
	if err == nil && d.Schema.State == SchemaCurrent {
		err = op.ready(ctx)
	}
	if err == nil {
		d.Reachable, err = d.Schema.State != SchemaAbsent, d.Schema.Err()
	}
	if err == nil && d.Schema.State == SchemaPending && cfg.Database.AutoMigrate {
		err = mayMigrate(ctx, cfg.Database.URL)
	}
	switch {
	case err != nil:
		return []Finding{{SeverityError, subjectDatabase, err.Error(), err}}
	case d.Schema.State != SchemaCurrent && !cfg.Database.AutoMigrate:
		return []Finding{{SeverityWarning, subjectDatabase, "migrations are pending and auto-migrate is false; run 'observerd migrate up'", nil}}
	}
	return nil
}

// mayMigrate fails where the role lacks rights for a migration.
func mayMigrate(ctx context.Context, url config.URL) error {
	found, err := examine.Run(ctx, examine.Options{URL: url.Reveal()})
	if lacks := found.Role.ToMigrate; err == nil && len(lacks) > 0 {
		err = wiring.Mistake(fmt.Errorf("migrations are pending, and the role %s lacks %s; run 'observerd migrate up' with a role that has them, or grant them", found.Role.Name, strings.Join(lacks, ", ")))
	}
	return err
}

func (c *ObserverCheck) fail(subject string, err error) {
	c.findings = append(c.findings, Finding{SeverityError, subject, err.Error(), err})
}

// These begin the subject of a finding that is about a sink or a lock provider.
const (
	sinkSubject     = "sink "
	providerSubject = "lock provider "
)

// probe asks each sink and each lock provider of the configuration whether it can be used,
// each for as long at most. Nothing is written.
func probe(ctx context.Context, cfg *config.Config, timeout time.Duration) []Finding {
	found := make([][]Finding, len(cfg.Sinks)+len(cfg.Locks.Providers))
	var work sync.WaitGroup
	ask := func(into *[]Finding, subject string, settings kind.Settings) {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			for _, f := range settings.Probe(ctx) {
				finding := Finding{SeverityError, subject, f.Err.Error(), f.Err}
				switch {
				case f.Warning:
					finding.Severity = SeverityWarning
				case wiring.FaultOf(f.Err) == wiring.Failure:
					finding.cause = wiring.Mistake(f.Err)
				}
				*into = append(*into, finding)
			}
		})
	}
	for i, s := range cfg.Sinks {
		ask(&found[i], sinkSubject+s.ID, s.Settings)
	}
	for i, p := range cfg.Locks.Providers {
		if settings, ok := p.Settings.(lockkind.Settings); ok {
			ask(&found[len(cfg.Sinks)+i], providerSubject+p.ID, settings.For(cfg.Locks.Region))
		}
	}
	work.Wait()
	return slices.Concat(found...)
}
