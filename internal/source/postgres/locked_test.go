package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// shapes are the ways to read the rows of a table orders with the columns id and
// at: what makes them, beside the table, and what is granted to a role that has
// nothing else.
var shapes = map[string]struct {
	with   string
	query  observer.Query
	grants []string
}{
	"table": {"", observer.Query{Table: "orders"}, []string{"SELECT ON orders"}},
	"query": {"", observer.Query{SQL: "SELECT o.id, o.at FROM orders o LEFT JOIN orders p ON p.id = o.id + 100"}, []string{"SELECT ON orders"}},
	"view": {
		"CREATE VIEW latest AS SELECT * FROM orders",
		observer.Query{Table: "latest"}, []string{"SELECT ON latest"},
	},
	"query of a view": {
		"CREATE VIEW latest AS SELECT * FROM orders; CREATE VIEW newest AS SELECT * FROM latest",
		observer.Query{SQL: "SELECT * FROM newest"}, []string{"SELECT ON newest"},
	},
	"parent": {
		"CREATE TABLE base (id int, at timestamptz NOT NULL); ALTER TABLE orders INHERIT base",
		observer.Query{Table: "base"}, []string{"SELECT ON base"},
	},
	"query of a parent": {
		"CREATE TABLE base (id int, at timestamptz NOT NULL); ALTER TABLE orders INHERIT base",
		observer.Query{SQL: "SELECT * FROM base"}, []string{"SELECT ON base"},
	},
	"partitioned table": {
		partitioned, observer.Query{Table: "parts"}, []string{"SELECT ON parts", "SELECT ON orders"},
	},
	"partitions without a grant": {
		partitioned, observer.Query{Table: "parts"}, []string{"SELECT ON parts"},
	},
	"table with a policy": {
		`CREATE TABLE secured AS SELECT * FROM orders; ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
		CREATE POLICY known ON secured USING (id IN (SELECT id FROM orders))`,
		observer.Query{Table: "secured"}, []string{"SELECT ON secured", "SELECT ON orders"},
	},
}

const partitioned = `CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (at);
	ALTER TABLE parts ATTACH PARTITION orders FOR VALUES FROM ('2024-01-01') TO (MAXVALUE);
	CREATE TABLE old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2024-01-01')`

const orders = `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL);
	INSERT INTO orders VALUES (1, '2024-05-01'), (2, '2024-05-02'); `

// eachShape runs a test for every shape, by the role with the fewest rights.
func eachShape(t *testing.T, timeout time.Duration, test func(t *testing.T, address string, s *postgres.Source, q observer.Query)) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			exec(t, connect(t, address), orders+shape.with)
			reader := pgtest.NewRole(t, address, append(shape.grants, "USAGE ON SCHEMA public")...)
			q := shape.query
			q.Stream, q.Key, q.Timestamp = "orders", []string{"id"}, "at"
			test(t, address, open(t, postgres.Options{URL: reader, QueryTimeout: timeout}), q)
		})
	}
}

// outcome is what has become of a read: its rows and its failure.
type outcome struct {
	rows int
	err  error
}

func drained(rows observer.Rows) outcome {
	var o outcome
	for rows.Next() {
		if o.rows++; rows.Row().Err != nil {
			o.err = errors.Join(o.err, rows.Row().Err)
		}
	}
	o.err = errors.Join(o.err, rows.Err(), rows.Close())
	return o
}

// sessions waits until the sources have as many sessions of that state as wanted.
func sessions(t *testing.T, conn *pgx.Conn, want int, state string) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name LIKE 'observerd source %' AND `+state).Scan(&n)
		if err == nil && n != want {
			err = fmt.Errorf("%d sessions where %s, want %d", n, state, want)
		}
		return err
	})
}

const (
	waiting = `wait_event_type = 'Lock'`
	busy    = `state <> 'idle'`
)

// A table that is written anew is empty for a snapshot from before that, so a
// read must not have made its own when it gets the lock. SET UNLOGGED writes a
// partition anew without a lock on what it is part of.
func TestReadOfARewrittenTable(t *testing.T) {
	t.Parallel()
	eachShape(t, 0, func(t *testing.T, address string, s *postgres.Source, q observer.Query) {
		owner, other := connect(t, address), connect(t, address)
		rewritten := func(in observer.Range) {
			rows, err := s.Read(t.Context(), q, in)
			if err != nil {
				t.Fatal(err)
			}
			exec(t, owner, `BEGIN; ALTER TABLE orders SET UNLOGGED`)
			read := make(chan outcome, 1)
			go func() { read <- drained(rows) }()
			sessions(t, other, 1, waiting)
			exec(t, owner, `COMMIT; ALTER TABLE orders SET LOGGED`)
			if got := <-read; got.rows != 2 || got.err != nil {
				t.Errorf("%+v: %d rows, %v; want 2", in, got.rows, got.err)
			}
		}
		all := observer.Range{From: "2024-04-01 00:00:00.000000"}
		dated := observer.Range{From: all.From, Part: observer.PartDated}
		rewritten(all)
		for _, in := range []observer.Range{all, dated} { // As in a poll, which knows what it reads.
			for range 2 {
				if _, err := s.Horizon(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			rewritten(in)
		}
	})
}

// A column of the key that becomes wider while the lock of its table is waited for
// writes other keys than the columns say that were told of.
func TestReadOfAWidenedKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after string
		want          string
		rows          int
	}{
		"scale":            {"numeric(10,0)", "numeric(12,2)", "columns have changed their types", 0},
		"length":           {"char(4)", "char(8)", "columns have changed their types", 0},
		"precision":        {"numeric(10,2)", "numeric(12,2)", "", 2},
		"length of a text": {"varchar(4)", "varchar(8)", "", 2},
		"any scale":        {"numeric(10,2)", "numeric", "", 2},
		"domain":           {"price", "price", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner, other := connect(t, address), connect(t, address)
			exec(t, owner, `CREATE DOMAIN price AS numeric(10,2); CREATE TABLE orders (id `+test.before+` PRIMARY KEY); INSERT INTO orders VALUES ('1'), ('2')`)
			rows, err := open(t, postgres.Options{URL: address}).Read(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, owner, `BEGIN; ALTER TABLE orders ALTER id TYPE `+test.after+`; LOCK TABLE orders`)
			read := make(chan outcome, 1)
			go func() { read <- drained(rows) }()
			sessions(t, other, 1, waiting)
			exec(t, owner, `COMMIT`)
			got := <-read
			if got.rows != test.rows || (got.err == nil) != (test.want == "") || got.err != nil && !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("%d rows, %v; want %d and %q", got.rows, got.err, test.rows, test.want)
			}
		})
	}
}

// What functions read nobody knows, so it is not locked, and must not be waited
// for with a snapshot: it may be written anew by then.
func TestReadThatCallsAFunction(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		with  string
		query observer.Query
	}{
		"query": {
			`CREATE FUNCTION listed() RETURNS SETOF orders LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT * FROM orders; END'`,
			observer.Query{SQL: "SELECT * FROM listed()"},
		},
		"policy": {
			`CREATE TABLE secured AS SELECT * FROM orders; ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
			CREATE FUNCTION known(i int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN i IN (SELECT id FROM orders); END';
			CREATE POLICY known ON secured USING (known(id))`,
			observer.Query{Table: "secured"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner, other := connect(t, address), connect(t, address)
			exec(t, owner, orders+shape.with)
			s := open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public", "USAGE ON SCHEMA public")})
			q := shape.query
			q.Key, q.Timestamp = []string{"id"}, "at"
			rows, err := s.Read(t.Context(), q, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, owner, `BEGIN; ALTER TABLE orders SET UNLOGGED`)
			var begun string
			if err := owner.QueryRow(t.Context(), `SELECT clock_timestamp()::text`).Scan(&begun); err != nil {
				t.Fatal(err)
			}
			read := make(chan outcome, 1)
			go func() { read <- drained(rows) }()
			// It was refused and stays away for a while; or it waits, as it should not.
			sessions(t, other, 1, fmt.Sprintf(`(state = 'idle' AND state_change > '%s'
				OR wait_event_type = 'Lock' AND clock_timestamp() > query_start + interval '0.1 s')`, begun))
			exec(t, owner, `COMMIT`)
			if got := <-read; got.rows != 2 || got.err != nil {
				t.Errorf("%d rows, %v; want 2", got.rows, got.err)
			}
		})
	}
}

// A table that goes between the look at what is read and its lock, as partitions
// do, is no fault of the query: the next read looks again.
func TestTableThatGoesBeforeTheRows(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"dropped": `DROP TABLE old`,
		"renamed": `ALTER TABLE old RENAME TO former`,
		"moved":   `CREATE SCHEMA archive; ALTER TABLE old SET SCHEMA archive`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner, other := connect(t, address), connect(t, address)
			exec(t, owner, orders+partitioned)
			s := open(t, postgres.Options{URL: address})
			q := observer.Query{Table: "parts", Key: []string{"id"}, Timestamp: "at"}
			rows, err := s.Read(t.Context(), q, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, owner, `BEGIN; `+change)
			read := make(chan outcome, 1)
			go func() { read <- drained(rows) }()
			sessions(t, other, 1, waiting)
			exec(t, owner, `COMMIT`)
			var f *observer.Fault
			if got := <-read; got.rows != 0 || !errors.As(got.err, &f) || f.Class != observer.ClassRetry || f.Code != "42P01" {
				t.Errorf("%d rows, %v; want none and another try", got.rows, got.err)
			}
			if rows, err = s.Read(t.Context(), q, observer.Range{}); err != nil {
				t.Fatal(err)
			}
			if got := drained(rows); got.rows != 2 || got.err != nil {
				t.Errorf("afterwards: %d rows, %v", got.rows, got.err)
			}
		})
	}
}

// Writers who lock a table one after the other never leave it free for those
// who do not queue.
func TestLockedAgainAndAgain(t *testing.T) {
	t.Parallel()
	eachShape(t, 10*time.Second, func(t *testing.T, address string, s *postgres.Source, q observer.Query) {
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		defer writers.Wait()
		defer cancel()
		for range 3 {
			conn := connect(t, address)
			writers.Go(func() {
				for ctx.Err() == nil {
					_, _ = conn.PgConn().Exec(ctx, `BEGIN; LOCK TABLE orders; SELECT pg_sleep(0.02); COMMIT`).ReadAll()
				}
			})
		}
		for range 3 {
			rows, err := s.Read(t.Context(), q, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			if got := drained(rows); got.rows != 2 || got.err != nil {
				t.Errorf("%d rows, %v; want 2", got.rows, got.err)
			}
		}
	})
}

// What belongs to a table may be locked when the table is not, and shows when its
// rows are read: here the index of the values that are stored apart.
func TestLockedBeneathTheTable(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner, other := connect(t, address), connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v text);
		ALTER TABLE orders ALTER COLUMN v SET STORAGE EXTERNAL; INSERT INTO orders VALUES (1, repeat('x', 100000))`)
	var index string
	if err := owner.QueryRow(t.Context(), `SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.reltoastrelid = i.indrelid
		WHERE c.oid = 'orders'::regclass`).Scan(&index); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, `BEGIN; REINDEX INDEX `+index)
	rows, err := open(t, postgres.Options{URL: address}).Read(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan outcome, 1)
	go func() { read <- drained(rows) }()
	sessions(t, other, 1, waiting)
	sessions(t, other, 0, busy) // It was refused, and stays away for a while.
	exec(t, owner, `COMMIT`)
	if got := <-read; got.rows != 1 || got.err != nil {
		t.Errorf("%d rows, %v; want 1", got.rows, got.err)
	}
}

// A partition that the range does not need may be locked for as long as it likes.
func TestLockedOutOfRange(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, orders+partitioned)
	s := open(t, postgres.Options{URL: address, QueryTimeout: 10 * time.Second})
	query := observer.Query{SQL: "SELECT * FROM parts", Key: []string{"id"}, Timestamp: "at"}
	horizon(t, s, query)
	exec(t, owner, `BEGIN; LOCK TABLE old`)
	for _, q := range []observer.Query{query, {Table: "parts", Key: query.Key, Timestamp: query.Timestamp}} {
		rows, err := s.Read(t.Context(), q, observer.Range{From: "2024-04-01 00:00:00.000000"})
		if err != nil {
			t.Fatal(err)
		}
		if got := drained(rows); got.rows != 2 || got.err != nil {
			t.Errorf("%d rows, %v; want 2", got.rows, got.err)
		}
	}
}

// TestQueryThatChangesBehindItsHorizon reads another table than the horizon has seen, which
// is written anew: a read that has locked only what was seen does not wait for it with a snapshot.
func TestQueryThatChangesBehindItsHorizon(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, orders+`CREATE TABLE later (LIKE orders); INSERT INTO later VALUES (3, '2024-05-03');
		CREATE FUNCTION latest() RETURNS SETOF orders LANGUAGE sql STABLE AS 'SELECT * FROM orders'`)
	s := open(t, postgres.Options{URL: address})
	q := observer.Query{SQL: "SELECT * FROM latest()", Key: []string{"id"}, Timestamp: "at"}
	horizon(t, s, q)
	exec(t, owner, `CREATE OR REPLACE FUNCTION latest() RETURNS SETOF orders LANGUAGE sql STABLE AS 'SELECT * FROM later'`)
	exec(t, owner, `BEGIN; ALTER TABLE later SET UNLOGGED`)
	read := make(chan outcome, 1)
	go func() { // On a busy machine it is explained again, and waits for the table.
		rows, err := s.Read(t.Context(), q, observer.Range{From: "2024-04-01 00:00:00.000000"})
		if err != nil {
			read <- outcome{err: err}
			return
		}
		read <- drained(rows)
	}()
	exec(t, owner, `SELECT pg_sleep(0.3); COMMIT`)
	if got := <-read; got.rows != 1 || got.err != nil {
		t.Errorf("%d rows, %v; want 1", got.rows, got.err)
	}
}

// TestQueryIsDescribedBehindItsHorizon reads the columns that there are, whatever the horizon has seen.
func TestQueryIsDescribedBehindItsHorizon(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	s := open(t, postgres.Options{URL: address})
	exec(t, owner, orders)
	q := observer.Query{SQL: "SELECT * FROM orders", Key: []string{"id"}, Timestamp: "at"}
	for _, change := range []string{
		"ALTER TABLE orders ADD note text DEFAULT 'kept'", "ALTER TABLE orders ALTER id TYPE bigint", "ALTER TABLE orders DROP note",
		"ALTER TABLE orders RENAME TO former; CREATE TABLE orders AS TABLE former",
	} {
		horizon(t, s, q)
		exec(t, owner, change)
		rows := sourcetest.ReadAll(t, s, q, observer.Range{From: "2024-04-01 00:00:00.000000"})
		if len(rows) != 2 || strings.Contains(string(rows[0].Data), "kept") != (strings.Contains(change, "kept") || strings.Contains(change, "bigint")) {
			t.Errorf("%s: %+v", change, rows)
		}
	}
}

// What is changed between the look at the columns and the rows is read by the
// next poll: this one has told other columns.
func TestColumnsThatChangeBeforeTheRows(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	s := open(t, postgres.Options{URL: address})
	for name, change := range map[string]string{
		"a text":          `ALTER TABLE orders ALTER COLUMN v TYPE text USING 'A' || v`,
		"another number":  `ALTER TABLE orders ALTER COLUMN v TYPE numeric USING 'NaN'`,
		"another table":   `ALTER TABLE orders RENAME TO former; CREATE TABLE orders (id int, at timestamptz, v text); INSERT INTO orders VALUES (1, now(), '')`,
		"another instant": `ALTER TABLE orders ALTER COLUMN at TYPE timestamp`,
	} {
		for _, q := range []observer.Query{{Table: "orders"}, {SQL: "SELECT * FROM orders"}} {
			exec(t, owner, `DROP TABLE IF EXISTS orders, former; CREATE TABLE orders (id int PRIMARY KEY, at timestamptz, v int); INSERT INTO orders VALUES (1, now(), 7)`)
			q.Key, q.Timestamp = []string{"id"}, "at"
			rows, err := s.Read(t.Context(), q, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, owner, change)
			if got := drained(rows); got.rows != 0 || observer.ClassOf(got.err) != observer.ClassRetry {
				t.Errorf("%s: %d rows, %v; want none and another try", name, got.rows, got.err)
			}
			rows, err = s.Read(t.Context(), q, observer.Range{})
			if err != nil {
				t.Fatal(err)
			}
			if got := drained(rows); got.rows != 1 || got.err != nil {
				t.Errorf("%s, afterwards: %d rows, %v", name, got.rows, got.err)
			}
		}
	}
}

// TestKnownTableThatChanges has a source that knows a table read it as one that was just
// opened, after each change. The read that meets the change may have to look again.
func TestKnownTableThatChanges(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE SCHEMA green; CREATE TYPE green.mood AS ENUM ('good');
		CREATE TABLE green.orders (id int PRIMARY KEY, at timestamptz NOT NULL, v int, w int, m green.mood); INSERT INTO green.orders VALUES (1, now(), 7, 8, 'good')`)
	q := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	role := pgtest.NewRole(t, address, "SELECT ON green.orders", "USAGE ON SCHEMA green", "pg_read_all_stats")
	name := parsed(t, role).User.Username()
	exec(t, owner, `GRANT CREATE ON SCHEMA public TO PUBLIC; GRANT USAGE ON SCHEMA green TO PUBLIC; SET search_path = live, green, public; ALTER ROLE "`+name+`" SET search_path = live, green, public`)
	s := open(t, postgres.Options{URL: role})
	see := func(s *postgres.Source) string {
		h, err := s.Horizon(t.Context(), q)
		if err != nil {
			return err.Error()
		}
		from, err := s.CursorAt(t.Context(), q, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		seen := fmt.Sprintf("undated %t, exact %t, identity %s", h.Undated, h.Exact, h.Identity)
		for _, in := range []observer.Range{{}, {Part: observer.PartDated, From: from}} {
			rows, err := s.Read(t.Context(), q, in)
			if err != nil {
				t.Fatal(err)
			}
			columns := rows.Columns()
			got := drained(rows)
			seen += fmt.Sprintf("; columns %v, %d rows, %v", columns, got.rows, got.err)
		}
		return seen
	}
	see(s)
	for _, change := range []string{
		`ALTER TYPE green.mood RENAME TO feeling`,
		`ALTER SCHEMA green RENAME TO live; CREATE SCHEMA green; CREATE TABLE green.orders (id int); GRANT USAGE ON SCHEMA green TO PUBLIC`,
		`ALTER TABLE orders ADD COLUMN x text`,
		`ALTER TABLE orders DROP COLUMN v`,
		`ALTER TABLE orders RENAME COLUMN w TO v`,
		`ALTER TABLE orders ALTER COLUMN v TYPE text`,
		`ALTER TABLE orders ALTER COLUMN at DROP NOT NULL`,
		`ALTER TABLE orders ALTER COLUMN at TYPE timestamp`,
		`VACUUM FULL pg_attribute`,
		`ALTER TABLE orders RENAME TO former; CREATE TABLE orders (id int, at date); INSERT INTO orders VALUES (1, now()), (2, NULL); GRANT SELECT ON orders TO PUBLIC`,
		`DROP TABLE orders; CREATE VIEW orders AS SELECT id, at FROM former; GRANT SELECT ON orders TO PUBLIC`,
		`DROP VIEW orders; ALTER TABLE former RENAME TO orders; CREATE TABLE child () INHERITS (orders); INSERT INTO child VALUES (2, now())`,
		`DROP TABLE child; ALTER TABLE orders ENABLE ROW LEVEL SECURITY`,
		`ALTER TABLE orders DISABLE ROW LEVEL SECURITY; REVOKE SELECT ON orders FROM PUBLIC, "` + name + `"`,
		`CREATE ROLE "` + name + `_of"; GRANT SELECT ON orders TO "` + name + `_of"`,
		`GRANT "` + name + `_of" TO "` + name + `"`,
		`REVOKE "` + name + `_of" FROM "` + name + `"; REVOKE SELECT ON orders FROM "` + name + `_of"; DROP ROLE "` + name + `_of"; GRANT SELECT ON orders TO PUBLIC`,
		`DROP TABLE orders`,
	} {
		for _, early := range []bool{true, false} {
			if early {
				_, _ = s.Horizon(t.Context(), q)
				exec(t, owner, change)
				if rows, err := s.Read(t.Context(), q, observer.Range{Part: observer.PartDated, From: "2000-01-01"}); err == nil {
					if got := drained(rows); got.err != nil && observer.ClassOf(got.err) != observer.ClassRetry && observer.ClassOf(got.err) != observer.ClassQuery {
						t.Errorf("%s: %v", change, got.err)
					}
				}
			}
			if known, opened := see(s), see(open(t, postgres.Options{URL: role})); known != opened {
				t.Errorf("%s: read as\n%s, by a source that was just opened as\n%s", change, known, opened)
			}
		}
	}
}

// A lock that lasts for longer than the query timeout is a fault.
func TestLockedForTooLong(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY)`)
	exec(t, owner, `BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE`)
	s := open(t, postgres.Options{URL: address, QueryTimeout: 5 * time.Second})
	table := observer.Query{Table: "orders", Key: []string{"id"}}
	query := observer.Query{SQL: "SELECT * FROM orders", Key: []string{"id"}}
	isLocked := func(what string, err error) {
		t.Helper()
		var f *observer.Fault
		if !errors.As(err, &f) || f.Class != observer.ClassTimeout || f.Code != "55P03" {
			t.Errorf("%s: %v, want a timeout with code 55P03", what, err)
		} else if text := err.Error(); !strings.Contains(text, "somebody has locked a table") || !strings.HasSuffix(text, "(SQLSTATE 55P03)") {
			t.Errorf("%s: %q does not say what is locked", what, text)
		}
	}
	_, err := s.Horizon(t.Context(), query)
	isLocked("horizon of a query", err)
	_, err = s.Read(t.Context(), query, observer.Range{})
	isLocked("read of a query", err)
	rows, err := s.Read(t.Context(), table, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() {
		t.Error("a row of a locked table")
	}
	isLocked("read", rows.Err())
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	exec(t, owner, `COMMIT`)
	if _, err := s.Describe(t.Context(), query); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Those who come back to a lock leave connections to those whose tables are free.
func TestLocksCostHalfOfTheConnections(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner, other := connect(t, address), connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY)`)
	exec(t, owner, `BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE`)
	s := open(t, postgres.Options{URL: address, PoolSize: 2})
	read := make(chan outcome, 2)
	for range cap(read) {
		rows, err := s.Read(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { read <- drained(rows) }()
	}
	seen := map[int32]bool{}
	waiting := func() int {
		rows, err := other.Query(t.Context(), `SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass`)
		if err != nil {
			t.Fatal(err)
		}
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			seen[pid] = true
		}
		return len(pids)
	}
	waittest.Eventually(t, time.Minute, func() error {
		if n := waiting(); n > 0 || len(seen) < cap(read) {
			return fmt.Errorf("%d reads wait for the lock, and %d have", n, len(seen))
		}
		return nil
	})
	// Now both have met the lock. They come back after a second, then two.
	for returns, before := 0, 0; returns < 2; time.Sleep(10 * time.Millisecond) {
		n := waiting()
		if n > 1 {
			t.Fatalf("%d of 2 connections wait for the lock again", n)
		}
		if n > before {
			returns++
		}
		before = n
	}
	exec(t, owner, `COMMIT`)
	for range cap(read) {
		if got := <-read; got.err != nil {
			t.Error(got.err)
		}
	}
}

// What can be read need not be what LOCK TABLE takes: that needs a right to the
// whole table, of a view's owner too, and knows no materialized views.
func TestReadWithoutLocks(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, orders+`CREATE MATERIALIZED VIEW kept AS SELECT * FROM orders; CREATE VIEW latest AS SELECT id, at FROM orders`)
	const some = "SELECT (id, at) ON orders"
	viewer, err := url.Parse(pgtest.NewRole(t, address, some))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, owner, `ALTER VIEW latest OWNER TO `+viewer.User.Username())
	for name, test := range map[string]struct{ table, sql, grant string }{
		"some columns":                   {"orders", "", some},
		"a query of some columns":        {"", "SELECT id, at FROM orders", some},
		"a materialized view":            {"kept", "", "SELECT ON kept"},
		"a query of a materialized view": {"", "SELECT * FROM kept", "SELECT ON kept"},
		"a view that shows some columns": {"latest", "", "SELECT ON latest"},
		"a query of no table":            {"", "SELECT 1 AS id, now() AS at UNION ALL SELECT 2, now()", some},
	} {
		s := open(t, postgres.Options{URL: pgtest.NewRole(t, address, test.grant, "USAGE ON SCHEMA public")})
		rows, err := s.Read(t.Context(), observer.Query{Table: test.table, SQL: test.sql, Key: []string{"id"}, Timestamp: "at"}, observer.Range{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := drained(rows); got.rows != 2 || got.err != nil {
			t.Errorf("%s: %d rows, %v; want 2", name, got.rows, got.err)
		}
	}
}
