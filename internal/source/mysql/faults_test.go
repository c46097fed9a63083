package mysql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/netfault"
)

// A session that the server has ended while it lay idle costs no poll.
func TestIdleSessionKilled(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner, s := connect(t, address), open(t, mysql.Options{URL: address})
	const ours = "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
	for range 3 {
		if _, err := s.Identity(t.Context()); err != nil {
			t.Fatal(err)
		}
		exec(t, owner, "KILL "+itoa(count(t, owner, ours)))
		eventually(t, "the session is gone", func() bool { return count(t, owner, ours) == 0 })
	}
}

// long is a stream whose end nobody waits for.
func long(t *testing.T, s *mysql.Source) observer.Rows {
	t.Helper()
	rows, err := s.Read(t.Context(), observer.Query{
		SQL: "SELECT seq AS id, REPEAT('x', 1000) AS v FROM seq_1_to_1000000", Key: []string{"id"},
	}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	return rows
}

func TestSessionKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"performance-schema": "ON"}})
	address := server.New(t)
	owner, s := connect(t, address), open(t, mysql.Options{URL: address, Name: "shop, east"})
	rows := long(t, s)
	defer func() { _ = rows.Close() }()
	id := count(t, owner, `SELECT processlist_id FROM performance_schema.session_connect_attrs
		WHERE attr_name = 'program_name' AND attr_value = 'observerd source shop? east'`)
	if n := count(t, owner, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%seq_1_to_1000000%' AND command = 'Query'"); n < 1 {
		t.Error("the statement does not run any more, so nothing is proved")
	}
	exec(t, owner, "KILL "+itoa(id))
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
	rows = long(t, s)
	exec(t, owner, "KILL QUERY "+itoa(count(t, owner, "SELECT MAX(id) FROM information_schema.processlist WHERE info LIKE '%seq_1_to_1000000%' AND id <> CONNECTION_ID()")))
	for rows.Next() {
		continue
	}
	if err := rows.Err(); observer.ClassOf(err) != observer.ClassKilled {
		t.Errorf("Err = %v, want class killed", err)
	}
	_ = rows.Close()
}

// endless keeps the server busy, which then does not look whether anybody waits.
const endless = "SELECT 1 AS id, SUM(a.seq * b.seq) AS v FROM seq_1_to_1000001 a, seq_1_to_1000001 b"

// A statement that nobody waits for any more does not run on over there.
func TestSilentDatabase(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	s := open(t, mysql.Options{URL: address, QueryTimeout: 5 * time.Second, PoolSize: 1})
	owner := connect(t, address)
	rows, err := s.Read(t.Context(), observer.Query{SQL: endless, Key: []string{"id"}}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() || !errors.Is(rows.Err(), source.ErrSilent) || observer.ClassOf(rows.Err()) != observer.ClassTimeout {
		t.Errorf("Err = %v, want ErrSilent", rows.Err())
	}
	if err := rows.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	eventually(t, "the statement has ended", func() bool {
		return count(t, owner, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%seq_1_to_1000001%' AND id <> CONNECTION_ID()") == 0
	})
}

// The server ends a small statement before we do, and the connection survives: it
// is the look for equal keys that is slow here, which may be left out. A machine
// that stands still just then lets us end it, but not every time.
func TestSlowStatement(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	var failures []string
	for range 5 {
		gate := &book{}
		s := open(t, mysql.Options{URL: address, QueryTimeout: 4 * time.Second, Gate: gate})
		d, err := s.Describe(t.Context(), observer.Query{SQL: endless, Key: []string{"id"}})
		_, afterwards := s.Identity(t.Context())
		if errors.Join(err, afterwards) == nil && d.KeyUnique == source.Unknown && gate.said() == "allow accepted" {
			return
		}
		failures = append(failures, fmt.Sprintf("%v, afterwards %v, logons: %s", err, afterwards, gate.said()))
	}
	t.Error(strings.Join(failures, "\n"))
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	s := open(t, mysql.Options{URL: mariatest.New(t), QueryTimeout: timeout})
	sourcetest.SlowReader(t, s, observer.Query{SQL: "SELECT seq AS id, REPEAT('x', 1000) AS v FROM seq_1_to_20000", Key: []string{"id"}}, 20000, timeout)
}

// A server that went away without a word keeps nobody waiting.
func TestCloseDoesNotWaitForAServerThatIsGone(t *testing.T) {
	t.Parallel()
	proxied, proxy := netfault.StartBefore(t, mariatest.New(t))
	s, err := mysql.Open(mysql.Options{URL: proxied})
	if err != nil {
		t.Fatal(err)
	}
	rows, left := long(t, s), long(t, s)
	proxy.SetImpairment(netfault.BlackHole())
	began := time.Now()
	if err := rows.Close(); err != nil {
		t.Log("the read ended with", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for left.Next() { // What had arrived by then may still be read.
		continue
	}
	if err := left.Close(); err != nil || left.Err() == nil {
		t.Errorf("a read outlived its source: %v, %v", err, left.Err())
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the end took %s", took)
	}
}
