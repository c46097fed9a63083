package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// tracked are the settings that PgBouncer accepts at the start of a session, in
// its own defaults. It ends a session that asks for any other.
var tracked = []string{"user", "database", "application_name", "client_encoding", "datestyle", "timezone", "standard_conforming_strings"}

// pooler stands before a server as PgBouncer does, and counts round trips.
type pooler struct {
	url    string
	server string // its address
	holds  bool   // see holding

	mu     sync.Mutex
	asked  bool // the last that passed was the client's
	trips  int
	parsed int // how often the text of the identity has passed
	// statements counts those that were run, left is how much of the client's last message is to come.
	statements, left int
}

func startPooler(t *testing.T, address string) *pooler {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{server: u.Host}
	u.Host = listener.Addr().String()
	p.url = u.String()
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		clients.Wait()
	})
	return p
}

func (p *pooler) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	backend := pgproto3.NewBackend(client, client)
	message, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	startup, ok := message.(*pgproto3.StartupMessage)
	if !ok {
		return // a request to cancel
	}
	for name := range startup.Parameters {
		if !slices.Contains(tracked, name) {
			backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			_ = backend.Flush()
			return
		}
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	frontend := pgproto3.NewFrontend(server, server)
	frontend.Send(startup)
	if frontend.Flush() != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, p.noting(server, false))
		_ = client.Close()
	})
	_, _ = io.Copy(p.holding(server), p.noting(client, true))
	_ = server.Close()
	back.Wait()
}

// noting counts a trip whenever the client speaks after the server.
func (p *pooler) noting(from io.Reader, client bool) io.Reader {
	return io.TeeReader(from, writer(func(b []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if client && !p.asked {
			p.trips++
		}
		p.asked = client
		if client {
			p.parsed += bytes.Count(b, []byte("pg_control_system"))
			p.count(b)
		}
		return len(b), nil
	}))
}

// count counts the messages Query and Execute. The driver writes whole messages.
func (p *pooler) count(b []byte) {
	for len(b) > 0 {
		if p.left == 0 {
			if b[0] == 'Q' || b[0] == 'E' {
				p.statements++
			}
			p.left = 1 + int(binary.BigEndian.Uint32(b[1:]))
		}
		n := min(p.left, len(b))
		p.left, b = p.left-n, b[n:]
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// stalled is how long a machine stands still.
const stalled = 300 * time.Millisecond

// holding holds the first pipeline of a connection back, but for its first message, as a
// machine does that stands still just then.
func (p *pooler) holding(server io.Writer) io.Writer {
	holds := p.holds
	return writer(func(b []byte) (int, error) {
		if !holds || b[0] != 'P' {
			return server.Write(b)
		}
		holds = false
		first := 1 + int(binary.BigEndian.Uint32(b[1:]))
		if _, err := server.Write(b[:first]); err != nil {
			return 0, err
		}
		<-time.After(stalled)
		rest, err := server.Write(b[first:])
		return first + rest, err
	})
}

// poll takes each step of a poll and returns the data of its rows and how many
// round trips and statements there were.
func (p *pooler) poll(t *testing.T, s *postgres.Source, q observer.Query) (data []string, trips, statements int) {
	t.Helper()
	p.mu.Lock()
	trips, statements = p.trips, p.statements
	p.mu.Unlock()
	if h, err := s.Horizon(t.Context(), q); err != nil || h.Identity == "" && q.Timestamp != "" {
		t.Fatalf("%+v, %v", h, err)
	}
	in := observer.Range{}
	if q.Timestamp != "" {
		in = observer.Range{Part: observer.PartDated, From: "2000-01-01 00:00:00.000000"}
	}
	for _, row := range sourcetest.ReadAll(t, s, q, in) {
		data = append(data, string(row.Data))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return data, p.trips - trips, p.statements - statements
}

// A source asks for nothing at the start of a session that PgBouncer would
// refuse, takes no more round trips for that, and has its settings nevertheless.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders VALUES (1, now());
		CREATE VIEW latest AS SELECT o.* FROM orders o LEFT JOIN orders p ON p.id = o.id + 1 WHERE p.id IS NULL; CREATE VIEW newest AS SELECT * FROM latest;
		CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
		CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (100); INSERT INTO parts TABLE orders`)
	p := startPooler(t, address)
	s := open(t, postgres.Options{URL: p.url})
	settings := observer.Query{Key: []string{"id"}, SQL: `SELECT concat_ws(' ', current_setting('transaction_isolation'),
		current_setting('transaction_read_only'), current_setting('statement_timeout'), current_setting('lock_timeout'),
		current_setting('timezone'), current_setting('intervalstyle')) AS id FROM orders`}
	if got, _, _ := p.poll(t, s, settings); len(got) != 1 || got[0] != `{"id":"repeatable read on 0 1ms UTC iso_8601"}` {
		t.Errorf("a read has the settings %s", got)
	}
	table := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	query := observer.Query{SQL: "SELECT * FROM orders", Key: []string{"id"}, Timestamp: "at"}
	for what, test := range map[string]struct {
		query             observer.Query
		trips, statements int
	}{
		"table": {table, 2, 5}, "query": {query, 7, 55},
		"view":              {observer.Query{Table: "newest", Key: []string{"id"}, Timestamp: "at"}, 2, 5},
		"partitioned table": {observer.Query{Table: "parts", Key: []string{"id"}, Timestamp: "at"}, 2, 5},
	} {
		rows, trips, statements := p.poll(t, s, test.query)
		// The first poll looks the table up. The pool asks a connection that was idle for a
		// second whether it still lives, as on a machine that stands still between two steps.
		for tries := 0; (trips > test.trips || statements > test.statements) && tries < 20; tries++ {
			rows, trips, statements = p.poll(t, s, test.query)
		}
		if len(rows) != 1 || trips > test.trips || statements > test.statements {
			t.Errorf("a poll of a %s: %d rows in %d round trips with %d statements, want at most %d and %d", what, len(rows), trips, statements, test.trips, test.statements)
		}
	}
	// LOCK TABLE does not wait for a view that is replaced, so its reads are explained apart.
	if _, trips, _ := p.poll(t, s, observer.Query{SQL: "SELECT * FROM newest", Key: []string{"id"}, Timestamp: "at"}); trips < 8 {
		t.Errorf("a poll of a query of a view takes %d round trips, want 8", trips)
	}
	horizon(t, s, query)
	time.Sleep(150 * time.Millisecond)
	p.mu.Lock()
	before := p.trips
	p.mu.Unlock()
	sourcetest.ReadAll(t, s, query, observer.Range{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trips-before < 5 {
		t.Errorf("a read long after its horizon takes %d round trips, want 5: it is explained again", p.trips-before)
	}
}

// TestFixedStatementsArePreparedOnce in a session, and sent as before where sessions forget
// them, or have them from others.
func TestFixedStatementsArePreparedOnce(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders VALUES (1, now())`)
	table := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	for what, test := range map[string]struct {
		between func(ctx context.Context, s *postgres.Source) error
		parsed  int
	}{
		"kept":             {func(context.Context, *postgres.Source) error { return nil }, 1},
		"forgotten":        {func(ctx context.Context, s *postgres.Source) error { return s.Execute(ctx, "DEALLOCATE ALL") }, 4},
		"prepared already": {func(_ context.Context, s *postgres.Source) error { s.ForgetPrepared(t.Context()); return nil }, 4},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := startPooler(t, address)
			s := open(t, postgres.Options{URL: p.url, PoolSize: 1})
			p.poll(t, s, table) // Its look is another one: the table is not known yet.
			p.mu.Lock()
			p.parsed = 0
			p.mu.Unlock()
			for range 4 {
				if rows, _, _ := p.poll(t, s, table); len(rows) != 1 {
					t.Errorf("%d rows", len(rows))
				}
				if err := test.between(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if p.parsed != test.parsed {
				t.Errorf("the text was sent %d times in four polls, want %d", p.parsed, test.parsed)
			}
		})
	}
}

// TestShortStatementTimeout has a server that is too busy to begin a transaction within
// the statement_timeout of the database. Ours counts from then on.
func TestShortStatementTimeout(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)`)
	exec(t, connect(t, address), fmt.Sprintf(`ALTER DATABASE "%s" SET statement_timeout = '100ms'`, parsed(t, address).Path[1:]))
	p := startPooler(t, address)
	p.holds = true
	for what, q := range map[string]observer.Query{
		"a look-up": {Table: "orders", Key: []string{"id"}},
		"a read":    {SQL: "SELECT 1 AS id FROM pg_sleep(0.2)", Key: []string{"id"}},
	} {
		s := open(t, postgres.Options{URL: p.url})
		if _, err := s.Describe(t.Context(), q); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if rows, err := sourcetest.TryRead(s, q, observer.Range{}); err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, %v", what, len(rows), err)
		}
	}
}

// What a query calls must not write, whatever asks for it.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1);
		CREATE FUNCTION take() RETURNS SETOF int LANGUAGE sql AS 'DELETE FROM orders RETURNING id'`)
	s := open(t, postgres.Options{URL: address})
	if _, err := s.Describe(t.Context(), observer.Query{SQL: "SELECT take AS id FROM take()", Key: []string{"id"}}); observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("describe a query that writes: %v", err)
	}
	var left int
	if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// TestBehindPgBouncer has the real one, in both modes, and two sources at a time.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders SELECT n, now() FROM generate_series(1, 3) n`)
	for _, mode := range []bouncertest.Mode{bouncertest.Session, bouncertest.Transaction} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pooled := bouncertest.Start(t, pgtest.NewRole(t, address, "SELECT ON orders"), bouncertest.Options{Mode: mode}).URL()
			for range 2 {
				s := open(t, postgres.Options{URL: pooled})
				for range 3 {
					for what, q := range map[string]observer.Query{
						"table": {Table: "orders", Key: []string{"id"}, Timestamp: "at"},
						"query": {SQL: "SELECT * FROM orders", Key: []string{"id"}, Timestamp: "at"},
					} {
						_, identity := s.Identity(t.Context())
						_, horizon := s.Horizon(t.Context(), q)
						if rows := sourcetest.ReadAll(t, s, q, observer.Range{}); len(rows) != 3 || identity != nil || horizon != nil {
							t.Errorf("%s: %d rows, %v, %v", what, len(rows), identity, horizon)
						}
					}
				}
			}
		})
	}
}

// TestPoolerKeepsNoSettings looks at what polls leave in a session that others get.
func TestPoolerKeepsNoSettings(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders VALUES (1, now())`)
	pooled := bouncertest.Start(t, pgtest.NewRole(t, address, "SELECT ON orders"), bouncertest.Options{Mode: bouncertest.Transaction}).URL()
	s := open(t, postgres.Options{URL: pooled})
	p := pooler{}
	for range 2 {
		p.poll(t, s, observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"})
	}
	left := observer.Query{SQL: "SELECT concat_ws(' ', current_setting('default_transaction_read_only'), current_setting('bytea_output')) AS id", Key: []string{"id"}}
	exec(t, connect(t, address), `ALTER DATABASE "`+parsed(t, address).Path[1:]+`" SET bytea_output = 'escape'`)
	if rows := sourcetest.ReadAll(t, s, left, observer.Range{}); len(rows) != 1 || rows[0].Key != "off hex" {
		t.Errorf("a session behind a pooler has %+v", rows)
	}
}

// TestSettledSessions are the same session in each case, which has settings that a query of
// an observer or its role has made.
func TestSettledSessions(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL, f interval NOT NULL);
		INSERT INTO orders SELECT n, now() - n * interval '1 s', '1 day' FROM generate_series(1, 20000) n; CREATE INDEX ON orders (at)`)
	exec(t, owner, `ANALYZE orders`)
	role := pgtest.NewRole(t, address, "SELECT ON orders", "pg_read_all_stats")
	name := parsed(t, role).User.Username()
	exec(t, owner, `ALTER ROLE "`+name+`" SET default_transaction_isolation = serializable; ALTER ROLE "`+name+`" SET default_transaction_deferrable = on;
		ALTER ROLE "`+name+`" SET default_transaction_read_only = on`)
	exec(t, owner, `BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE orders SET f = f WHERE id = 1`)
	s := open(t, postgres.Options{URL: role, PoolSize: 1, QueryTimeout: 10 * time.Second})
	q := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	read := func(back time.Duration) []observer.Row {
		t.Helper()
		if _, err := s.Horizon(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		from, err := s.CursorAt(t.Context(), q, time.Now().Add(-back))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Horizon(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return sourcetest.ReadAll(t, s, q, observer.Range{Part: observer.PartDated, From: from})
	}
	for range 8 {
		read(5 * time.Hour)
	}
	for range 4 {
		if rows := read(time.Minute); len(rows) == 0 || !strings.Contains(string(rows[0].Data), `"f":"P1D"`) {
			t.Errorf("%+v", rows)
		}
	}
	plans := observer.Query{SQL: "SELECT generic_plans AS id, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%ORDER BY%orders%' OR statement LIKE '%orders%ORDER BY%'", Key: []string{"id"}}
	if rows := sourcetest.ReadAll(t, s, plans, observer.Range{}); len(rows) != 1 || rows[0].Key != "0" || strings.Contains(string(rows[0].Data), `"custom_plans":0`) {
		t.Errorf("the read is planned so: %+v", rows)
	}
	sets := observer.Query{SQL: "SELECT set_config('intervalstyle', 'sql_standard', false) AS id", Key: []string{"id"}}
	if rows := sourcetest.ReadAll(t, s, sets, observer.Range{}); len(rows) != 1 {
		t.Errorf("%+v", rows)
	}
	if rows := read(time.Minute); len(rows) == 0 || !strings.Contains(string(rows[0].Data), `"f":"P1D"`) {
		t.Errorf("after a query that sets something: %+v", rows)
	}
}

// TestNameThatTheDatabaseCannotHave fails alone: others share its look.
func TestNameThatTheDatabaseCannotHave(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	exec(t, connect(t, server), `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'`)
	u := parsed(t, server)
	u.Path = "/latin"
	exec(t, connect(t, u.String()), `CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL)`)
	t.Cleanup(func() { exec(t, connect(t, server), `DROP DATABASE latin WITH (FORCE)`) })
	s := open(t, postgres.Options{URL: u.String()})
	_, err := s.Horizon(t.Context(), observer.Query{Table: "注文", Key: []string{"id"}, Timestamp: "at"})
	if err == nil || !strings.Contains(err.Error(), "look up the table") {
		t.Errorf("got %v", err)
	}
	if h, err := s.Horizon(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}); err != nil || h.Cursor == "" {
		t.Errorf("%+v, %v", h, err)
	}
}
