package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

func TestFaultyURL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "orders", "mysql://u:hunter2@h/db", "postgres://u:hun%ter2@h/db", "postgres://u:hunter2@h:port/db",
		"postgres://u:hunter2/x@h:5432/db", "postgres://u:hunter2@h/db?sslmode=hunter2", "host=h password=hunter2",
		"postgres://u@h/db?password=hunter2&sslmode=never", "postgres://u:hunter2@h/db?sslmode=verify-ca&sslrootcert=/missing.pem",
	} {
		s, err := postgres.Open(postgres.Options{URL: text})
		if err == nil {
			t.Errorf("Open(%q) succeeded", text)
			_ = s.Close()
		} else if strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("Open(%q): %v holds the password", text, err)
		}
	}
}

// A refusal that every node would meet is not "unreachable".
func TestRefusals(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE orders (id int PRIMARY KEY, v text); INSERT INTO orders VALUES (1, 'confidential')`)
	wrong, err := url.Parse(pgtest.NewRole(t, address))
	if err != nil {
		t.Fatal(err)
	}
	stranger := wrong.String()
	missing := *wrong
	missing.Path = "/nowhere_at_all"
	q := observer.Query{Table: "orders", Key: []string{"id"}}
	cast := observer.Query{SQL: "SELECT id, v::int AS v FROM orders", Key: []string{"id"}}
	for name, test := range map[string]struct {
		url   string
		query observer.Query
		state string
	}{
		"no such database": {missing.String(), q, "3D000"},
		"no rights":        {stranger, q, "42501"},
		"a faulty cast":    {address, cast, "22P02"},
	} {
		s := open(t, postgres.Options{URL: test.url})
		rows, err := sourcetest.TryRead(s, test.query, observer.Range{})
		if len(rows) > 0 {
			t.Errorf("%s: a row", name)
		}
		var refused *postgres.Error
		if !errors.As(err, &refused) || refused.SQLSTATE != test.state || !strings.Contains(err.Error(), test.state) {
			t.Errorf("%s: %v, want SQLSTATE %s", name, err, test.state)
		}
		if errors.Is(err, observer.ErrUnreachable) || strings.Contains(err.Error(), "confidential") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(t, postgres.Options{URL: stranger}).Describe(t.Context(), q); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("Describe without rights: %v", err)
	}
}

func TestSessionKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	writer := connect(t, address)
	s := open(t, postgres.Options{URL: address, Name: "idle"})
	q := observer.Query{Stream: "long 'one'", SQL: "SELECT i AS id, repeat('x', 1000) AS v FROM generate_series(1, 100000) AS i", Key: []string{"id"}}
	rows, err := s.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	var killed bool
	err = writer.QueryRow(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'observerd source long ?one?'`).Scan(&killed)
	if err != nil || !killed {
		t.Fatalf("find the session by its name: %v", err)
	}
	for rows.Next() {
		continue
	}
	if err := rows.Err(); !errors.Is(err, observer.ErrUnreachable) {
		t.Errorf("Err = %v, want ErrUnreachable", err)
	}
	if err := rows.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := len(sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT 1 AS id", Key: []string{"id"}}, observer.Range{})); n != 1 {
		t.Errorf("%d rows from a new session, want 1", n)
	}
}

// TestAnIdleSessionStays has a role whose idle sessions the server would end.
func TestAnIdleSessionStays(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, "CREATE TABLE orders (id int PRIMARY KEY)")
	reader, err := url.Parse(pgtest.NewRole(t, address, "SELECT ON orders"))
	if err != nil {
		t.Fatal(err)
	}
	role := reader.User.Username()
	exec(t, owner, "ALTER ROLE "+role+" SET idle_session_timeout = '3s'")
	s := open(t, postgres.Options{URL: reader.String()})
	sourcetest.ReadAll(t, s, observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
	time.Sleep(4 * time.Second)
	var sessions int
	if err := owner.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", role).Scan(&sessions); err != nil || sessions != 1 {
		t.Errorf("%d sessions, %v, want the one that has read", sessions, err)
	}
}

func TestSilentDatabase(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.New(t), QueryTimeout: 3 * time.Second})
	rows, err := s.Read(t.Context(), observer.Query{SQL: "SELECT 1 AS id FROM pg_sleep(60)", Key: []string{"id"}}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() || !errors.Is(rows.Err(), source.ErrSilent) {
		t.Errorf("Err = %v, want ErrSilent", rows.Err())
	}
	if err := rows.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	s := open(t, postgres.Options{URL: pgtest.New(t), QueryTimeout: timeout})
	sourcetest.SlowReader(t, s, observer.Query{SQL: "SELECT i AS id, repeat('x', 1000) AS v FROM generate_series(1, 20000) AS i", Key: []string{"id"}}, 20000, timeout)
}
