package app

import (
	"context"
	"errors"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// lookups reads what the HTTP API shows, by the connections of the node.
type lookups struct {
	*App
	exposed func() bool
}

// Observer implements [web.Lookups].
func (l lookups) Observer(ctx context.Context, r status.Report, i int) (status.ObserverDetails, error) {
	return wiring.Details(ctx, l.db, l.cfg, r, i)
}

// Polls implements [web.Lookups].
func (l lookups) Polls(ctx context.Context, observer string, limit int) ([]status.Poll, error) {
	return l.db.Polls(ctx, observer, limit)
}

// Locks implements [web.Lookups].
func (l lookups) Locks(ctx context.Context, text string, limit int) (_ []status.HeldLock, err error) {
	f := locks.Filter{Limit: limit}
	if text != "" {
		d, err := locks.Parse(text)
		if err != nil {
			return nil, &web.InvalidError{Parameter: "lock", Reason: err.Error()}
		}
		f.Key = d.Key()
	}
	o := wiring.LockOptions(l.cfg.Locks)
	o.Provider, o.Node, o.Logger = borrowed{database.On(l.db, l.component("locks"))}, l.cfg.Node.Name, l.component("locks")
	m, err := locks.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	found, err := m.Find(ctx, f)
	return fn.Each(found, wiring.HeldLock), err
}

// borrowed is a provider whose database stays open when its manager is closed.
type borrowed struct{ *database.Provider }

// Capabilities implements [locks.Provider].
func (b borrowed) Capabilities() locks.Capabilities {
	c := b.Provider.Capabilities()
	c.Closer = nil
	return c
}

// Events implements [web.Lookups]. Rows are not shown while other hosts are let in without
// TLS or authentication, whatever the configuration asks for.
func (l lookups) Events(ctx context.Context, observer string, limit int) ([]events.Event, error) {
	return l.db.Log().Latest(ctx, observer, limit, l.cfg.HTTP.ShowPayload && !l.exposed())
}
