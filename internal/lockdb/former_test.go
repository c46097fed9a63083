package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/migrations"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// formerCommitSQL and formerAdvanceSQL are the commits of the release whose
// schema is version 2, word for word: nodes of it go on beside newer ones.
const formerCommitSQL = `
WITH held AS MATERIALIZED (
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE
), lease AS (
  UPDATE int_lock l
     SET {touch}
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive}
  RETURNING 1
), cur AS (
  UPDATE obs_cursor c
     SET version = c.version + 1, commit_id = $7, last_seq = c.last_seq + $8, low_ts = $9, newest_ts = $10,
         row_count = c.row_count + $11, live_count = $12, query_fingerprint = $13
    FROM lease
   WHERE c.stream_id = $5 AND c.version = $6
  RETURNING c.stream_id, c.stream, c.last_seq - $8 AS seq
), noted AS (
  INSERT INTO obs_observed AS o (stream_id, key, row_hash, version, row_number, gone)
  SELECT cur.stream_id, u.key, u.row_hash, u.version, u.row_number, u.gone
    FROM cur, unnest($14::text[], $15::bytea[], $16::integer[], $17::bigint[], $18::boolean[])
              AS u(key, row_hash, version, row_number, gone)
  ON CONFLICT (stream_id, key) DO UPDATE
     SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone
), dead AS (
  INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at)
  SELECT cur.stream, u.key, u.digest, u.reason, u.raw, {now}, {now}
    FROM cur, unnest($19::text[], $20::bytea[], $21::text[], $22::text[]) AS u(key, digest, reason, raw)
  ON CONFLICT (stream, digest) DO UPDATE SET last_at = excluded.last_at
), logged AS (
  INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data)
  SELECT cur.stream, cur.seq + u.n, u.id, u.type, u.subject, u.version, u.change, u.time, u.data::json
    FROM cur, unnest($23::uuid[], $24::text[], $25::text[], $26::integer[], $27::text[], $28::timestamptz[], $29::text[])
              WITH ORDINALITY AS u(id, type, subject, version, change, time, data, n)
)
SELECT (SELECT count(*) FROM lease), (SELECT count(*) FROM cur)`

const formerAdvanceSQL = `
UPDATE obs_cursor
   SET version = version + 1, commit_id = $3, last_seq = last_seq + $4, low_ts = $5, newest_ts = $6,
       row_count = row_count + $7, live_count = $8, query_fingerprint = $9
 WHERE stream_id = $1 AND version = $2`

const formerResetSQL = `
UPDATE obs_cursor
   SET version = version + 1, low_ts = '', newest_ts = '', query_fingerprint = '', failures = 0, retry_at = NULL
 WHERE stream = $1`

// formerTakeSQL and formerDescribeSQL acquire a lock as that release does.
const (
	formerTakeSQL     = `INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('order-observer-poll', 'DEFAULT', $1, {utc})`
	formerDescribeSQL = `
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness)
VALUES ('order-observer-poll', 'DEFAULT', $1, 1, 'order-observer-poll', 'node-a', '', 30000, {now}, '', $1, '')`
)

// formerAdvance commits no rows, as the transaction of that release does.
func formerAdvance(ctx context.Context, db *DB, ch *observer.Chunk) error {
	return db.db.InTx(ctx, "former advance", func(tx *sql.Tx) error {
		return current(tx.ExecContext(ctx, db.db.SQL(formerAdvanceSQL), ch.Cursor.ID, ch.Cursor.Version, ch.CommitID.String(),
			len(ch.Events), ch.Low, ch.Newest, len(ch.New), ch.Live, ch.Fingerprint))
	})
}

// formerStatement commits as the one statement of that release does.
func formerStatement(ctx context.Context, db *DB, g lock.Grant, ch *observer.Chunk) error {
	var leases, cursors int
	args := append(cursorArgs(g, ch), noteArgs(ch)...)
	args = append(append(args, deadArgs(ch.Dead)...), eventArgs(ch)...)
	text := db.db.LockSQL(formerCommitSQL, "l", "$4::float8")
	if err := db.db.Main.QueryRowContext(ctx, text, args...).Scan(&leases, &cursors); err != nil {
		return err
	}
	return verdict(leases == 1, cursors == 1)
}

// upgrade is a database on which a former node and one of ours are at work.
type upgrade struct {
	t      *testing.T
	db     *DB
	url    string
	grant  lock.Grant
	former func(ch *observer.Chunk) error
}

// TestFormerNodesGoOnBesideNewerOnes begins with a database of schema 2 that has
// rows, and migrates it while a node of that release is at work.
func TestFormerNodesGoOnBesideNewerOnes(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), "postgres, a statement": pgtest.New(t), "postgres, a transaction": pgtest.New(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			u := &upgrade{t: t, db: db, url: url}
			u.former = func(ch *observer.Chunk) error { return formerAdvance(t.Context(), db, ch) }
			if name == "postgres, a statement" {
				u.former = func(ch *observer.Chunk) error { return formerStatement(t.Context(), db, u.grant, ch) }
			}
			u.run()
		})
	}
}

func (u *upgrade) run() {
	ctx, s := u.t.Context(), u.begin()
	first := u.chunk(observer.Cursor{ID: 1, Stream: "orders"}, "2026-01-01")
	u.must(u.former(first))
	if err := u.db.Ready(ctx); !errors.Is(err, sqldb.ErrPending) {
		u.t.Fatalf("a database of schema 2: %v", err)
	}
	u.must(u.db.Migrate(ctx))
	u.must(u.db.Ready(ctx))

	u.compare(s, first.Next(), "", "") // What was there has stayed, and knows no source.
	second := u.chunk(u.cursor(s), "2026-01-02")
	second.Identity, second.Columns, second.RereadAt = "test:1", "a text", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	after, err := s.Commit(ctx, *second)
	u.must(err)
	u.compare(s, after, "test:1", "a text")

	third := u.chunk(after, "2026-01-03")
	u.must(u.former(third))
	third.Identity, third.Columns, third.RereadAt = second.Identity, second.Columns, second.RereadAt
	u.compare(s, third.Next(), "test:1", "a text") // It speaks of the commit before.
	if err := u.former(u.chunk(after, "2026-01-04")); !errors.Is(err, observer.ErrConflict) {
		u.t.Errorf("a former node commits from an old cursor: %v", err)
	}
	_, err = u.db.db.Exec(ctx, "former reset", formerResetSQL, "orders")
	u.must(err)
	reset := u.cursor(s)
	if reset.Low != "" || reset.Identity != "test:1" || reset.Columns != "a text" {
		u.t.Errorf("after a reset by a former binary: %+v", reset)
	}
	_, err = s.Commit(ctx, *u.chunk(reset, "2026-01-05"))
	u.must(err)
}

// begin makes the tables of schema 2 and a cursor.
func (u *upgrade) begin() *Store {
	ctx := u.t.Context()
	u.upTo(2)
	u.grant = lock.Grant{Request: lock.Request{
		Key: "order-observer-poll", Region: "DEFAULT", TTL: 30 * time.Second, Name: "order-observer-poll", Node: "node-a",
	}, Term: uuid.NewString(), Fence: 1, Began: time.Now()}
	for _, text := range []string{formerTakeSQL, formerDescribeSQL} {
		_, err := u.db.db.Exec(ctx, "former acquisition", text, u.grant.Term)
		u.must(err)
	}
	s := u.db.Store(u.grant)
	u.must(s.create(ctx, "orders"))
	return s
}

// upTo runs the migrations of a former binary, whose sessions keep their search_path.
func (u *upgrade) upTo(version int64) {
	dialect, files, pool := goose.DialectSQLite3, migrations.SQLite(), u.db.db.Main
	if u.db.Backend() == "postgres" {
		former, err := sql.Open("pgx", u.url)
		u.must(err)
		defer former.Close()
		dialect, files, pool = goose.DialectPostgres, migrations.Postgres(), former
	}
	provider, err := goose.NewProvider(dialect, pool, files, goose.WithTableName(sqldb.SchemaTable), goose.WithDisableGlobalRegistry(true))
	u.must(err)
	_, err = provider.UpTo(u.t.Context(), version)
	u.must(err)
}

// chunk makes one of a row and its event. Both are written where the commit is
// one statement; the cursor moves in any case.
func (u *upgrade) chunk(c observer.Cursor, low string) *observer.Chunk {
	key := fmt.Sprint("ORD-", c.Version)
	return &observer.Chunk{
		Cursor: c, CommitID: uuid.New(), Low: low, Newest: low, Fingerprint: "fp", Live: c.Live + 1,
		New: []observer.Observed{{Key: key, Hash: []byte("0123456789abcdef"), Version: 1, Number: c.Rows + 1}},
		Events: []events.Event{{
			ID: events.NewID(c.Stream, c.Epoch, key, 1, nil), Type: events.TypeNewOrder, Subject: key, Version: 1, Change: events.ChangeNew,
			Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Data: []byte(`{}`),
		}},
	}
}

func (u *upgrade) cursor(s *Store) observer.Cursor {
	u.t.Helper()
	c, err := s.Cursor(u.t.Context(), "orders")
	u.must(err)
	return c
}

func (u *upgrade) compare(s *Store, want observer.Cursor, identity, columns string) {
	u.t.Helper()
	want.Identity, want.Columns = identity, columns
	if got := u.cursor(s); got != want {
		u.t.Errorf("the cursor is\n%+v, want\n%+v", got, want)
	}
}

func (u *upgrade) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}
