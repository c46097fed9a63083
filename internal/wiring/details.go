package wiring

import (
	"context"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/locks"
)

const (
	// lastActs is how many acts are shown of an observer, lastPolls how many polls.
	lastActs  = 10
	lastPolls = 10
)

// Details returns all that is known of the i-th observer of a report: what the report has, the
// configuration, and what is read in addition.
func Details(ctx context.Context, db *lockdb.DB, cfg *config.Config, r status.Report, i int) (d status.ObserverDetails, err error) {
	id := r.Observers[i].ID
	d = status.ObserverDetails{At: r.At, Observer: r.Observers[i]}
	d.Sinks = fn.Only(r.Sinks, func(s status.Sink) bool { return s.Stream == id })
	d.Sweeps = fn.Only(r.Sweeps, func(s status.Sweep) bool { return s.Observer == id })
	d.Generations = fn.Only(r.Generations, func(g status.Generation) bool { return g.Observer == id })
	if o, ok := fn.Find(cfg.Observers, func(o config.Observer) bool { return o.ID == id }); ok {
		source := cfg.Sources[o.Source].URL
		account, _ := source.Account()
		d.URL = source.String()
		d.Accounts = fn.Only(r.Accounts, func(a status.Account) bool { return a.ID == account })
		d.Definition = fn.Each(o.Settings(), func(s config.Setting) status.Setting { return status.Setting(s) })
	}
	if d.Polls, err = db.Polls(ctx, id, lastPolls); err != nil {
		return d, err
	}
	d.Acts, err = db.Operations().Acts(ctx, lockdb.ActFilter{Subject: id, Limit: lastActs})
	return d, err
}

// HeldLock returns a lock as commands and the HTTP API show it.
func HeldLock(l locks.Found) status.HeldLock {
	return status.HeldLock{
		Lock:     l.Lock.String(),
		Holder:   l.Node,
		Term:     l.Term,
		Fence:    l.Fence,
		TTL:      l.Lock.TTL,
		Age:      l.Age,
		Left:     l.Left,
		Waiting:  l.Waiting,
		Metadata: l.Lock.Metadata,
	}
}
