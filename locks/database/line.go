package database

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Wait implements [lock.Line].
func (p *Provider) Wait(ctx context.Context, requests []lock.Request) (turns []lock.Turn, err error) {
	rows := fn.Each(requests, func(r lock.Request) lock.Grant { return lockdb.Stored(lock.Grant{Request: r}) })
	err = sqldb.RetryConflicts(ctx, func() error {
		turns, err = p.engine.wait(ctx, rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %d locks: %w", len(requests), err)
	}
	return turns, nil
}

// Leave implements [lock.Line].
func (p *Provider) Leave(ctx context.Context, requests []lock.Request) error {
	list := p.db.List(fn.Each(requests, func(r lock.Request) string { return r.Place.ID }))
	if _, err := p.db.Acquire.ExecContext(ctx, p.sql.SQL().LeaveLine, list); err != nil {
		return fmt.Errorf("leave the line of %d locks: %w", len(requests), err)
	}
	return nil
}

// aheadOf returns the node of the first in line whom the request must not pass; empty for
// none.
func (p *Provider) aheadOf(ctx context.Context, r lock.Request) string {
	var node string
	if err := p.db.Acquire.QueryRowContext(ctx, p.sql.SQL().Ahead, wantedArgs(lockdb.Stored(lock.Grant{Request: r}))...).Scan(&node); err != nil {
		return ""
	}
	return node
}
