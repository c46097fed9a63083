package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// sourceMetrics tell how the sources of this process fare.
type sourceMetrics struct {
	up, waiting *prometheus.GaugeVec
	failures    *prometheus.CounterVec
}

func newSourceMetrics(r prometheus.Registerer) *sourceMetrics {
	m := &sourceMetrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_source_up", Help: "1 when the last attempt of this node to reach the source went well, else 0.",
		}, []string{"source"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_source_polls_waiting", Help: "Polls that wait on this node until others of the source have begun to read.",
		}, []string{"source"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_source_failures_total", Help: "Failures of a source that this node has met, by class.",
		}, []string{"source", "class"}),
	}
	r.MustRegister(m.up, m.waiting, m.failures)
	return m
}

// prepare makes the counters of a source, so that they begin with 0.
func (m *sourceMetrics) prepare(name string) {
	for _, class := range []observer.Class{
		observer.ClassUnreachable, observer.ClassResource, observer.ClassKilled, observer.ClassTimeout,
		observer.ClassCredentials, observer.ClassSettings, observer.ClassQuery, observer.ClassData,
		observer.ClassRetry, observer.ClassDriver, observer.ClassUnknown,
	} {
		m.failures.WithLabelValues(name, string(class))
	}
}

// note counts what came of a call.
func (m *sourceMetrics) note(name string, class observer.Class, up bool) {
	if m == nil {
		return
	}
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(name).Set(value)
	if class != "" {
		m.failures.WithLabelValues(name, string(class)).Inc()
	}
}

// guarded is a source with the circuit of its database, what it has failed of
// counted.
type guarded struct {
	source.Database
	name string
	// url and gate are those of a source that is no [pending] one; gate is nil for
	// one without accounts.
	url     config.URL
	gate    *gate
	circuit circuit
	metrics *sourceMetrics // nil counts nothing
	// beginners are the polls of the scheduler; nil where there is none.
	beginners *beginners
}

// account returns the gate of the source; nil for one without accounts, or that
// could not be opened yet.
func (s *guarded) account() *gate {
	if p, late := s.Database.(*pending); late {
		return p.now().gate
	}
	return s.gate
}

// located returns the URL of the source. One that lacks a file is tried first, as
// by every other call.
func (s *guarded) located(ctx context.Context) (url config.URL, err error) {
	p, late := s.Database.(*pending)
	switch {
	case !late:
		return s.url, nil
	case p.now().Database == nil:
		err = s.try(ctx, func(context.Context) error { _, err := p.opened(); return err })
	}
	return p.now().url, err
}

// Identity implements [observer.Source].
func (s *guarded) Identity(ctx context.Context) (identity string, err error) {
	err = s.try(ctx, func(ctx context.Context) error { identity, err = s.Database.Identity(ctx); return err })
	return identity, err
}

// Horizon implements [observer.Source].
func (s *guarded) Horizon(ctx context.Context, q observer.Query) (h observer.Horizon, err error) {
	err = s.try(ctx, func(ctx context.Context) error { h, err = s.Database.Horizon(ctx, q); return err })
	return h, err
}

// KeyOrder implements [observer.Source].
func (s *guarded) KeyOrder(ctx context.Context, q observer.Query) (order string, err error) {
	err = s.try(ctx, func(ctx context.Context) error { order, err = s.Database.KeyOrder(ctx, q); return err })
	return order, err
}

// CursorAt implements [observer.Source].
func (s *guarded) CursorAt(ctx context.Context, q observer.Query, at time.Time) (cursor string, err error) {
	err = s.try(ctx, func(ctx context.Context) error { cursor, err = s.Database.CursorAt(ctx, q, at); return err })
	return cursor, err
}

// Read implements [observer.Source].
func (s *guarded) Read(ctx context.Context, q observer.Query, in observer.Range) (rows observer.Rows, err error) {
	var mine *call
	err = s.try(ctx, func(ctx context.Context) error {
		mine = callOf(ctx)
		rows, err = s.Database.Read(ctx, q, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	source.Begun(ctx)
	return &guardedRows{Rows: rows, source: s, call: mine}, nil
}

// Describe implements [source.Database].
func (s *guarded) Describe(ctx context.Context, q observer.Query) (d source.Description, err error) {
	err = s.try(ctx, func(ctx context.Context) error { d, err = s.Database.Describe(ctx, q); return err })
	return d, err
}

// SQL implements [source.Database].
func (s *guarded) SQL(ctx context.Context, q observer.Query, in observer.Range) (text string, err error) {
	err = s.try(ctx, func(ctx context.Context) error { text, err = s.Database.SQL(ctx, q, in); return err })
	return text, err
}

// Plan implements [source.Database].
func (s *guarded) Plan(ctx context.Context, q observer.Query, in observer.Range) (p source.Plan, err error) {
	err = s.try(ctx, func(ctx context.Context) error { p, err = s.Database.Plan(ctx, q, in); return err })
	return p, err
}

// try calls the source, unless its circuit is open. The context that it gives to
// the call tells the gate whose logons these are.
func (s *guarded) try(ctx context.Context, do func(context.Context) error) error {
	if err := s.circuit.enter(); err != nil {
		return err
	}
	ctx, c := asCall(ctx)
	err := do(ctx)
	s.note(c, err)
	return err
}

// note keeps the books of a call that has ended. An error without a class is
// that of whoever called, such as the end of a context, and says nothing of the
// source.
func (s *guarded) note(c *call, err error) {
	class := observer.ClassOf(err)
	if g := s.account(); g != nil {
		g.Settle(c, class != "")
	}
	if err != nil && class == "" {
		return
	}
	switch class {
	case "":
		s.circuit.reached()
	case observer.ClassUnreachable:
		s.circuit.missed(err)
	}
	s.metrics.note(s.name, class, !noSession(class))
}

// noSession reports whether a failure of that class means that there was no
// session at all.
func noSession(class observer.Class) bool {
	return class == observer.ClassUnreachable || class == observer.ClassCredentials || class == observer.ClassSettings
}

// guardedRows notice a source that fails while it is read.
type guardedRows struct {
	observer.Rows
	source *guarded
	call   *call
	noted  bool
}

// Err implements [observer.Rows].
func (r *guardedRows) Err() error {
	err := r.Rows.Err()
	if err != nil && !r.noted {
		r.noted = true
		r.source.note(r.call, err)
	}
	return err
}
