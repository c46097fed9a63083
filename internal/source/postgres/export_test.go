package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// HorizonOver is the horizon of a table in this database alone, were a relation, with
// its schema, what the server shows of its sessions.
func HorizonOver(ctx context.Context, s *Source, relation string) (observer.Horizon, error) {
	return inSession(ctx, s, func(c *session) (observer.Horizon, error) {
		sql := strings.Replace(fmt.Sprintf(lookSQL, noIdentitySQL, behindSQL), "FROM pg_catalog.pg_stat_activity", "FROM "+relation, 1)
		rows, err := c.rowsByPath(ctx, "look at open transactions", sql, "{}", "{}")
		if err != nil {
			return observer.Horizon{}, err
		}
		return activityOf(rows[0][1:]).horizon(0, timeUTC, time.UTC), nil
	})
}

// Execute runs a statement in a session of the pool.
func (s *Source) Execute(ctx context.Context, sql string) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.pooled.Release()
	_, err = c.conn.Exec(ctx, sql).ReadAll()
	return err
}

// ForgetPrepared has a session of the pool not know which statements it has prepared.
func (s *Source) ForgetPrepared(ctx context.Context) {
	if c, err := s.acquire(ctx); err == nil {
		defer c.pooled.Release()
		clear(c.kept.prepared)
	}
}
