// Package audit watches a coordination database from outside: triggers note
// each change of locks, cursors and turns in the transaction that made it, so
// that no node can leave one out. What they noted, and the event log, become a
// history.
package audit

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".
	_ "modernc.org/sqlite"             // The driver "sqlite".

	"github.com/observerd/observerd/test/suite/torture/history"
)

//go:embed audit_postgres.sql
var postgresSchema string

//go:embed audit_sqlite.sql
var sqliteSchema string

// DB is a coordination database.
type DB struct {
	*sql.DB
	// tables is what the names of the triggers' tables begin with, joins and xids
	// are where events and acts have their transactions.
	tables, schema     string
	eventXid, actXid   string
	eventJoin, actJoin string
	// committed is when the transaction of a row of the table of guarded rows ended.
	committed string
}

// Open prepares a connection, at the URL that a node has in its configuration.
// It sees what was committed by the time of each statement. The caller must Close it.
func Open(url string) (*DB, error) {
	driver, db := "pgx", DB{
		tables: "torture_audit.", schema: postgresSchema, eventXid: "CAST(e.xmin AS TEXT)", actXid: "CAST(a.xmin AS TEXT)",
		committed: "pg_xact_commit_timestamp(xmin)",
	}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, url = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
		db = DB{
			tables: "torture_audit_", schema: sqliteSchema, eventXid: "x.xid", actXid: "coalesce(x.xid, '')",
			eventJoin: "JOIN torture_audit_event x ON x.stream = e.stream AND x.seq = e.seq",
			actJoin:   "LEFT JOIN torture_audit_act x ON x.id = a.id",
			committed: "at",
		}
	}
	pool, err := sql.Open(driver, url)
	if err != nil {
		return nil, fmt.Errorf("open the coordination database: %w", err)
	}
	db.DB = pool
	return &db, nil
}

// Table is the name of a table of the triggers.
func (db *DB) Table(name string) string { return db.tables + name }

// Install adds the triggers to a migrated database that no node uses yet. On
// PostgreSQL, each node's connections must carry the node's name as their
// application_name, and an operator's none of those. On SQLite, the programs must
// be built with the tag failpoints.
func Install(ctx context.Context, url string, streams []history.Stream, ttl time.Duration) error {
	db, err := Open(url)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, db.schema); err != nil {
		return fmt.Errorf("install the audit: %w", err)
	}
	for _, s := range streams {
		_, err := db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %sstream VALUES ('%s', '%s', %d)`, db.tables, s.Name, s.LockKey, ttl.Milliseconds()))
		if err != nil {
			return fmt.Errorf("install the audit of %s: %w", s.Name, err)
		}
	}
	return nil
}

const (
	leasesSQL  = `SELECT id, key, old_term, new_term, xid, at, node, old_touched, new_touched FROM {tables}lease ORDER BY id`
	grantsSQL  = `SELECT id, key, term, fence, node, xid, at, ttl_ms, liveness FROM {tables}granted ORDER BY id`
	guardedSQL = `
		SELECT id, key, mode, term, fence, node, ttl_ms, kind, trusted, began, at, {committed} FROM {tables}guarded ORDER BY id`
	turnsSQL  = `SELECT id, type, turn, node, outcome, at FROM {tables}turn ORDER BY id`
	partsSQL  = `SELECT id, type, stream, turn_at, node, outcome, started_at, finished_at FROM obs_poll ORDER BY id`
	eventsSQL = `
		SELECT e.stream, e.seq, CAST(e.event_id AS TEXT), e.subject, e.version, e.change, e.data, {event.xid}
		  FROM obs_event e {event.join} ORDER BY e.stream, e.seq`
	actsSQL  = `SELECT a.action, a.subject, a.detail, {act.xid}, a.at FROM obs_audit a {act.join} ORDER BY a.id`
	stepsSQL = `
		SELECT id, stream, old_version, new_version, old_low, new_low, old_seq, new_seq, definition, accepted, all_read, commit_id, xid, at, node,
		       holder, holder_term, expired
		  FROM {tables}step ORDER BY id`
)

// Collect reads what the triggers noted, the event log and what operators did
// into the run. node names the node of a writer, empty for another's: a writer is
// an application_name on PostgreSQL, and the id of a process on SQLite. The cluster
// is at rest.
func Collect(ctx context.Context, url string, node func(writer string) string, run *history.Run) error {
	db, err := Open(url)
	if err != nil {
		return err
	}
	defer db.Close()
	c := collector{ctx: ctx, db: db}
	run.Steps = collect(&c, "steps of cursors", stepsSQL, func(s *history.Step, scan func(...any) error) error {
		err := scan(&s.ID, &s.Stream, &s.OldVersion, &s.NewVersion, &s.OldLow, &s.NewLow, &s.OldSeq, &s.NewSeq,
			&s.Definition, &s.Accepted, &s.AllRead, &s.CommitID, &s.Xid, instant{&s.At}, &s.Node, &s.Holder, &s.HolderTerm, &s.Expired)
		s.Node = node(s.Node)
		return err
	})
	run.Leases = collect(&c, "leases", leasesSQL, func(l *history.Lease, scan func(...any) error) error {
		err := scan(&l.ID, &l.Key, &l.OldTerm, &l.NewTerm, &l.Xid, instant{&l.At}, &l.Node, instant{&l.OldTouched}, instant{&l.NewTouched})
		// The session that shows a node frees the locks of dead ones.
		l.Node = node(strings.TrimSuffix(l.Node, " liveness"))
		return err
	})
	run.Grants = collect(&c, "grants", grantsSQL, func(g *history.Grant, scan func(...any) error) error {
		var ttl int64
		err := scan(&g.ID, &g.Key, &g.Term, &g.Fence, &g.Node, &g.Xid, instant{&g.At}, &ttl, &g.Liveness)
		g.TTL = time.Duration(ttl) * time.Millisecond
		return err
	})
	run.Turns = collect(&c, "turns", turnsSQL, func(t *history.Turn, scan func(...any) error) error {
		return scan(&t.ID, &t.Type, instant{&t.Turn}, &t.Node, &t.Outcome, instant{&t.At})
	})
	run.Parts = collect(&c, "parts of turns", partsSQL, func(p *history.Part, scan func(...any) error) error {
		return scan(&p.ID, &p.Type, &p.Stream, instant{&p.Turn}, &p.Node, &p.Outcome, instant{&p.Started}, instant{&p.Finished})
	})
	run.Events = collect(&c, "events", eventsSQL, func(e *history.Event, scan func(...any) error) error {
		var data []byte
		if err := scan(&e.Stream, &e.Seq, &e.ID, &e.Subject, &e.Version, &e.Change, &data, &e.Xid); err != nil {
			return err
		}
		var err error
		e.N, e.Shape, err = Data(data)
		return err
	})
	run.Acts = collect(&c, "acts of operators", actsSQL, func(a *history.Act, scan func(...any) error) error {
		return scan(&a.Action, &a.Subject, &a.Detail, &a.Xid, instant{&a.At})
	})
	return c.err
}

// CollectGuarded reads what programs wrote under general locks. A server keeps the times of
// commits (track_commit_timestamp). In SQLite no other writes before a commit.
func CollectGuarded(ctx context.Context, url string, run *history.Run) error {
	db, err := Open(url)
	if err != nil {
		return err
	}
	defer db.Close()
	c := collector{ctx: ctx, db: db}
	run.Guarded = collect(&c, "guarded writes", guardedSQL, func(g *history.Guarded, scan func(...any) error) error {
		var ttl int64
		err := scan(&g.ID, &g.Key, &g.Mode, &g.Term, &g.Fence, &g.Node, &ttl, &g.Kind, &g.Trusted, instant{&g.Began}, instant{&g.At}, instant{&g.Committed})
		g.TTL = time.Duration(ttl) * time.Millisecond
		return err
	})
	return c.err
}

// Data returns the version of the row that is in the data of an event, and the
// names of its columns.
func Data(data []byte) (n int64, shape string, err error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(data, &columns); err != nil {
		return 0, "", err
	}
	if text, ok := columns["n"]; ok {
		err = json.Unmarshal(text, &n)
	}
	return n, strings.Join(slices.Sorted(maps.Keys(columns)), ","), err
}

// instant scans a time, or one that SQLite has as text.
type instant struct{ *time.Time }

// Scan implements [sql.Scanner].
func (i instant) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		*i.Time = time.Time{}
	case time.Time:
		*i.Time = v.UTC()
	case string:
		*i.Time, err = time.Parse("2006-01-02 15:04:05.999999", v)
	default:
		err = fmt.Errorf("%T is no instant", value)
	}
	return err
}

// collector keeps the first error; nothing is read after it.
type collector struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call.
	db  *DB
	err error
}

func collect[T any](c *collector, what, text string, row func(v *T, scan func(...any) error) error) (all []T) {
	if c.err != nil {
		return nil
	}
	text = strings.NewReplacer("{tables}", c.db.tables, "{event.xid}", c.db.eventXid, "{event.join}", c.db.eventJoin,
		"{act.xid}", c.db.actXid, "{act.join}", c.db.actJoin, "{committed}", c.db.committed).Replace(text)
	rows, err := c.db.QueryContext(c.ctx, text)
	if err != nil {
		c.err = fmt.Errorf("collect the %s: %w", what, err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err = row(&v, rows.Scan); err != nil {
			break
		}
		all = append(all, v)
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		c.err = fmt.Errorf("collect the %s: %w", what, err)
	}
	return all
}
