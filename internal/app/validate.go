package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// errMistake is wrapped by the findings that the configuration has to be
// changed for.
var errMistake = errors.New("the configuration does not fit the databases")

// Severity says whether a finding stands in the way.
type Severity string

// The severities.
const (
	// SeverityError stands in the way.
	SeverityError Severity = "error"
	// SeverityWarning works, but worse than it could.
	SeverityWarning Severity = "warning"
)

// Finding is one thing that a look at the databases has shown.
type Finding struct {
	Severity Severity `json:"severity"`
	// Subject says what it is about, such as "observer warehouse-orders".
	Subject string `json:"subject"`
	// Text says what is wrong and what to do about it.
	Text string `json:"text"`
	// cause is the fault behind an error.
	cause error
}

// Validation is what the databases say to a configuration.
type Validation struct {
	Database  DatabaseCheck   `json:"database"`
	Observers []ObserverCheck `json:"observers"`
	Findings  []Finding       `json:"findings"`
}

// DatabaseCheck is the coordination database.
type DatabaseCheck struct {
	// URL is without secrets.
	URL       string `json:"url"`
	Reachable bool   `json:"reachable"`
	Schema    Schema `json:"schema"`
}

// ObserverCheck is one observer and its source.
type ObserverCheck struct {
	ID        string `json:"observer"`
	Source    string `json:"source"`
	Reachable bool   `json:"reachable"`
	// SQL is what a first poll sends; empty when that could not be found out.
	SQL string `json:"sql,omitempty"`

	findings []Finding
}

// Err joins the errors among the findings, for [FaultOf]; nil means that a
// node would work.
func (v Validation) Err() error {
	var errs []error
	for _, f := range v.Findings {
		if f.Severity == SeverityError {
			errs = append(errs, fmt.Errorf("%s: %s: %w", f.Subject, f.Text, f.cause))
		}
	}
	return errors.Join(errs...)
}

// Warnings counts the findings that do not stand in the way.
func (v Validation) Warnings() int {
	n := 0
	for _, f := range v.Findings {
		if f.Severity == SeverityWarning {
			n++
		}
	}
	return n
}

// Validate connects to the coordination database and to the source of every
// enabled observer. It creates and changes nothing. timeout bounds what each
// of them may take.
func Validate(ctx context.Context, cfg *config.Config, log *slog.Logger, timeout time.Duration) Validation {
	v := Validation{Database: DatabaseCheck{URL: cfg.Database.URL.String()}, Observers: []ObserverCheck{}, Findings: []Finding{}}
	if err := CheckRights(cfg); err != nil {
		v.Findings = append(v.Findings, Finding{SeverityError, "node", err.Error(), err})
	}
	for _, o := range cfg.Observers {
		if o.Enabled {
			v.Observers = append(v.Observers, ObserverCheck{ID: o.ID, Source: o.Source})
		}
	}
	var coordination []Finding
	var work sync.WaitGroup
	work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		coordination = v.Database.look(ctx, cfg, log)
	})
	for i := range v.Observers {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			v.Observers[i].look(ctx, cfg)
		})
	}
	work.Wait()
	v.Findings = append(v.Findings, coordination...)
	for _, o := range v.Observers {
		v.Findings = append(v.Findings, o.findings...)
	}
	v.Findings = onceEach(v.Findings)
	return v
}

// onceEach drops repeats: a source that cannot be reached is met by each of
// its observers, and by each in its own words.
func onceEach(findings []Finding) []Finding {
	seen := make(map[string]bool)
	kept := findings[:0]
	for _, f := range findings {
		if errors.Is(f.cause, observer.ErrUnreachable) {
			if seen[f.Subject] {
				continue
			}
			seen[f.Subject] = true
		}
		kept = append(kept, f)
	}
	return kept
}

// look asks the coordination database for its schema.
func (d *DatabaseCheck) look(ctx context.Context, cfg *config.Config, log *slog.Logger) []Finding {
	const subject = "database"
	op, err := NewOperator(OperatorOptions{Config: cfg, Logger: log})
	if errors.Is(err, fs.ErrPermission) {
		return nil // CheckRights has said so.
	}
	if err != nil {
		return []Finding{{SeverityError, subject, err.Error(), err}}
	}
	defer op.Close() // It was only read.
	if d.Schema, err = op.Schema(ctx); err == nil && d.Schema.State == SchemaCurrent {
		err = op.ready(ctx)
	}
	if err != nil {
		return []Finding{{SeverityError, subject, err.Error(), err}}
	}
	d.Reachable = d.Schema.State != SchemaAbsent
	switch {
	case d.Schema.State == SchemaNewer:
		return []Finding{{SeverityError, subject, lockdb.ErrSchemaNewer.Error(), lockdb.ErrSchemaNewer}}
	case d.Schema.State != SchemaCurrent && !cfg.Database.AutoMigrate:
		return []Finding{{SeverityWarning, subject, "migrations are pending and auto-migrate is false; run 'observerd migrate up'", nil}}
	}
	return nil
}

// look asks the source about the observer's query.
func (c *ObserverCheck) look(ctx context.Context, cfg *config.Config) {
	o, err := configured(cfg, c.ID)
	if err != nil {
		c.fail("observer "+c.ID, err)
		return
	}
	src, err := openSource(o.Source, cfg.Sources[o.Source])
	if err != nil {
		c.fail("source "+o.Source, fmt.Errorf("%w: %w", errMistake, err))
		return
	}
	defer src.Close() // It was only read.
	q := query(o)
	d, err := src.Describe(ctx, q)
	switch {
	case errors.Is(err, observer.ErrUnreachable):
		c.fail("source "+o.Source, err)
		return
	case ctx.Err() != nil:
		c.fail("source "+o.Source, fmt.Errorf("%w: no answer in time", observer.ErrUnreachable))
		return
	case err != nil:
		c.Reachable = true
		c.fail("observer "+c.ID, mistake{err})
		return
	}
	c.Reachable = true
	c.findings = append(c.findings, judge(o, d)...)
	if c.SQL, err = src.SQL(ctx, q, ""); err != nil {
		c.fail("observer "+c.ID, mistake{err})
	}
}

func (c *ObserverCheck) fail(subject string, err error) {
	c.findings = append(c.findings, Finding{SeverityError, subject, err.Error(), err})
}

// mistake marks an error as one that the configuration has to be changed for.
type mistake struct{ error }

// Is makes errors.Is(err, errMistake) true.
func (mistake) Is(target error) bool { return target == errMistake }

// Unwrap returns the error itself.
func (m mistake) Unwrap() error { return m.error }
