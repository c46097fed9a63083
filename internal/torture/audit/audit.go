// Package audit watches a coordination database from outside: triggers note
// each change of locks, cursors and turns in the transaction that made it, so
// that no node can leave one out. What they noted, and the event log, become a
// history.
package audit

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/torture/history"
)

//go:embed audit.sql
var schema string

// Install adds the triggers to a migrated database that no node uses yet. Each
// node's connections must carry the node's name as their application_name, and
// an operator's none of those.
func Install(ctx context.Context, url string, streams []history.Stream, ttl time.Duration) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("install the audit: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The triggers run as whoever makes the change.
	for _, statement := range []string{
		schema, `GRANT USAGE ON SCHEMA torture_audit TO PUBLIC`, `GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA torture_audit TO PUBLIC`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("install the audit: %w", err)
		}
	}
	for _, s := range streams {
		_, err := conn.Exec(ctx, `INSERT INTO torture_audit.stream VALUES ($1, $2, $3)`, s.Name, s.LockKey, ttl)
		if err != nil {
			return fmt.Errorf("install the audit of %s: %w", s.Name, err)
		}
	}
	return nil
}

const (
	leasesSQL = `
		SELECT id, key, old_term, new_term, xid, at, node, old_touched AT TIME ZONE 'UTC', new_touched AT TIME ZONE 'UTC'
		  FROM torture_audit.lease ORDER BY id`
	grantsSQL = `SELECT id, key, term, fence, node, xid, at, ttl, liveness FROM torture_audit.granted ORDER BY id`
	turnsSQL  = `SELECT id, type, turn, node, outcome, at FROM torture_audit.turn ORDER BY id`
	partsSQL  = `SELECT id, type, stream, turn_at, node, outcome, started_at, finished_at FROM obs_poll ORDER BY id`
	eventsSQL = `
		SELECT stream, seq, event_id::text, subject, version, change, coalesce((data ->> 'n')::bigint, 0),
		       coalesce((SELECT string_agg(name, ',' ORDER BY name COLLATE "C") FROM json_object_keys(data) AS name), ''), xmin::text
		  FROM obs_event ORDER BY stream, seq`
	actsSQL  = `SELECT action, subject, detail, xmin::text, at FROM obs_audit ORDER BY id`
	stepsSQL = `
		SELECT id, stream, old_version, new_version, old_low, new_low, old_seq, new_seq, definition, accepted, commit_id, xid, at, node,
		       holder, holder_term, expired
		  FROM torture_audit.step ORDER BY id`
)

// Collect reads what the triggers noted, the event log and what operators did
// into the run. isNode tells the names of nodes from those of others. The
// cluster is at rest.
func Collect(ctx context.Context, url string, isNode func(string) bool, run *history.Run) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("collect the history: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `SET TimeZone = 'UTC'`); err != nil {
		return fmt.Errorf("collect the history: %w", err)
	}
	c := collector{ctx: ctx, conn: conn}
	run.Steps = collect[history.Step](&c, "steps of cursors", stepsSQL, func(rows pgx.CollectableRow) (s history.Step, err error) {
		err = rows.Scan(&s.ID, &s.Stream, &s.OldVersion, &s.NewVersion, &s.OldLow, &s.NewLow, &s.OldSeq, &s.NewSeq,
			&s.Definition, &s.Accepted, &s.CommitID, &s.Xid, &s.At, &s.Node, &s.Holder, &s.HolderTerm, &s.Expired)
		if !isNode(s.Node) {
			s.Node = ""
		}
		return s, err
	})
	run.Leases = collect[history.Lease](&c, "leases", leasesSQL, func(rows pgx.CollectableRow) (l history.Lease, err error) {
		var touched, touches *time.Time
		err = rows.Scan(&l.ID, &l.Key, &l.OldTerm, &l.NewTerm, &l.Xid, &l.At, &l.Node, &touched, &touches)
		l.OldTouched, l.NewTouched = orZero(touched), orZero(touches)
		// The session that shows a node frees the locks of dead ones.
		if l.Node = strings.TrimSuffix(l.Node, " liveness"); !isNode(l.Node) {
			l.Node = ""
		}
		return l, err
	})
	run.Grants = collect[history.Grant](&c, "grants", grantsSQL, func(rows pgx.CollectableRow) (g history.Grant, err error) {
		err = rows.Scan(&g.ID, &g.Key, &g.Term, &g.Fence, &g.Node, &g.Xid, &g.At, &g.TTL, &g.Liveness)
		return g, err
	})
	run.Turns = collect[history.Turn](&c, "turns", turnsSQL, func(rows pgx.CollectableRow) (t history.Turn, err error) {
		err = rows.Scan(&t.ID, &t.Type, &t.Turn, &t.Node, &t.Outcome, &t.At)
		return t, err
	})
	run.Parts = collect[history.Part](&c, "parts of turns", partsSQL, func(rows pgx.CollectableRow) (p history.Part, err error) {
		err = rows.Scan(&p.ID, &p.Type, &p.Stream, &p.Turn, &p.Node, &p.Outcome, &p.Started, &p.Finished)
		return p, err
	})
	run.Events = collect[history.Event](&c, "events", eventsSQL, func(rows pgx.CollectableRow) (e history.Event, err error) {
		err = rows.Scan(&e.Stream, &e.Seq, &e.ID, &e.Subject, &e.Version, &e.Change, &e.N, &e.Shape, &e.Xid)
		return e, err
	})
	run.Acts = collect[history.Act](&c, "acts of operators", actsSQL, func(rows pgx.CollectableRow) (a history.Act, err error) {
		err = rows.Scan(&a.Action, &a.Subject, &a.Detail, &a.Xid, &a.At)
		return a, err
	})
	return c.err
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// collector keeps the first error; nothing is read after it.
type collector struct {
	ctx  context.Context //nolint:containedctx // It lives as long as one call.
	conn *pgx.Conn
	err  error
}

func collect[T any](c *collector, what, sql string, row pgx.RowToFunc[T]) []T {
	if c.err != nil {
		return nil
	}
	rows, err := c.conn.Query(c.ctx, sql)
	if err == nil {
		var all []T
		if all, err = pgx.CollectRows(rows, row); err == nil {
			return all
		}
	}
	c.err = fmt.Errorf("collect the %s: %w", what, err)
	return nil
}
