package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func events() observer.Query {
	return observer.Query{Stream: "events", Table: "events", Key: []string{"id"}, Timestamp: "at"}
}

const eventsTable = `CREATE TABLE events (id int PRIMARY KEY, at datetime(6) NOT NULL, KEY (at, id))`

func horizon(t *testing.T, s *mysql.Source, q observer.Query) observer.Horizon {
	t.Helper()
	h, err := s.Horizon(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// eventually waits for what another session does on its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not in 20 seconds", what)
		}
	}
}

// near reports whether a horizon is exact and lies that far behind, or up to two
// seconds more, as transactions show whole seconds.
func near(h observer.Horizon, lag time.Duration) bool {
	return h.Exact && h.Lag >= lag && h.Lag <= lag+2*time.Second
}

// These tests have a server of their own, since they want nobody else's
// transactions on it. Its system time zone is not that of its sessions, so a
// horizon that is off by an hour would show.
func TestHorizonWaitsForWhatIsOpen(t *testing.T) {
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"plugin-maturity": "unknown"}})
	url := server.New(t)
	s := open(t, mysql.Options{URL: url})
	owner, writer := connect(t, url), connect(t, url)
	exec(t, owner, eventsTable)

	t.Run("a transaction", func(t *testing.T) {
		exec(t, writer, "BEGIN; INSERT INTO events VALUES (1, NOW(6))")
		exec(t, owner, "DO SLEEP(2)")
		if h := horizon(t, s, events()); !h.Exact || h.Lag < 3*time.Second {
			t.Errorf("horizon = %+v two seconds after the beginning, want it before that", h)
		}
		h := horizon(t, s, events())
		exec(t, writer, "COMMIT")
		if rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor}); len(rows) != 1 {
			t.Errorf("from the horizon %+v: %+v, want the late row", h, rows)
		}
	})
	t.Run("a statement that touches nothing yet", func(t *testing.T) {
		exec(t, owner, "LOCK TABLES events WRITE")
		done := make(chan error, 1)
		go func() {
			_, err := writer.ExecContext(t.Context(), "INSERT INTO events VALUES (2, NOW(6))")
			done <- err
		}()
		waiting := connect(t, url)
		eventually(t, "the statement waits for the table", func() bool {
			return count(t, waiting, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND time_ms > 1500") == 1
		})
		h := horizon(t, s, events())
		exec(t, owner, "UNLOCK TABLES")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor}); h.Lag < 2*time.Second || len(rows) == 0 || rows[len(rows)-1].Key != "2" {
			t.Errorf("from the horizon %+v: %+v, want the row of the statement that waited", h, rows)
		}
	})
	t.Run("not our own reads, nor others that cannot write", func(t *testing.T) {
		rows, err := s.Read(t.Context(), observer.Query{SQL: "SELECT seq AS id, REPEAT('x', 1000) AS v FROM seq_1_to_100000", Key: []string{"id"}}, observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		exec(t, writer, "START TRANSACTION READ ONLY; SELECT * FROM events")
		exec(t, owner, "DO SLEEP(1.5)")
		if h := horizon(t, s, events()); !near(h, time.Second) || h.Lag > 2*time.Second {
			t.Errorf("horizon = %+v beside reads, want only the margin behind", h)
		}
		exec(t, writer, "COMMIT")
	})
	t.Run("the overlap, where it is longer", func(t *testing.T) {
		q := events()
		q.Overlap = time.Hour
		if h := horizon(t, s, q); !near(h, time.Hour) {
			t.Errorf("horizon = %+v, want the hour of overlap", h)
		}
	})
	t.Run("a prepared transaction", func(t *testing.T) { prepared(t, s, url) })
	t.Run("a server that only replication writes", func(t *testing.T) {
		exec(t, owner, "SET GLOBAL read_only = ON")
		defer exec(t, owner, "SET GLOBAL read_only = OFF")
		for grant, want := range map[string]string{"PROCESS ON *.*": "SLAVE MONITOR", "PROCESS, SLAVE MONITOR ON *.*": "less its delay"} {
			role := open(t, mysql.Options{URL: mariatest.NewRole(t, url, "SELECT ON events", grant)})
			d, err := role.Describe(t.Context(), events())
			if err != nil || d.HorizonExact || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], want) {
				t.Errorf("with %s: %+v, %v, want a warning of %s", grant, d, err, want)
			}
		}
	})
	t.Run("many observers", func(t *testing.T) { crowd(t, url) })
}

// Whoever asks again before the server would answer anew gets the former answer, and does not wait.
func TestHorizonIsSharedForAMoment(t *testing.T) {
	t.Parallel()
	url := mariatest.Start(t, mariatest.Options{}).New(t)
	exec(t, connect(t, url), eventsTable)
	proxied, taken := recorded(t, url)
	s := open(t, mysql.Options{URL: proxied, PoolSize: 1})
	asked := func() (n int) {
		for _, sql := range taken().Statements {
			if strings.Contains(sql, "innodb_trx") {
				n++
			}
		}
		return n
	}
	waittest.Eventually(t, time.Minute, func() error {
		<-time.After(200 * time.Millisecond)
		taken()
		first := horizon(t, s, events())
		if n := asked(); n != 1 {
			return fmt.Errorf("asked %d times after a pause", n)
		}
		again := horizon(t, s, events())
		if n := asked(); n > 0 {
			return fmt.Errorf("asked %d times at once after that", n)
		}
		if again.Cursor != first.Cursor || again.Now != first.Now {
			t.Errorf("horizon %+v, then %+v", first, again)
		}
		return nil
	})
}

// crowd asks for the horizon from many observers of a source at once. If each
// of them looked, a tenth of a second one after the other, the last would have
// to do without.
func crowd(t *testing.T, url string) {
	const observers = 40
	s := open(t, mysql.Options{URL: url, PoolSize: observers})
	var all sync.WaitGroup
	for range observers {
		all.Go(func() {
			if h, err := s.Horizon(t.Context(), events()); err != nil || !h.Exact {
				t.Errorf("horizon = %+v, %v beside other observers, want an exact one", h, err)
			}
		})
	}
	all.Wait()
}

// prepared transactions tell when they began while their session lasts; one that
// was left behind does not, so nothing is settled until it ends.
func prepared(t *testing.T, s *mysql.Source, url string) {
	owner := connect(t, url)
	t.Run("left behind", func(t *testing.T) {
		writer := connect(t, url)
		exec(t, writer, "XA START 'half'; INSERT INTO events VALUES (3, NOW(6)); XA END 'half'; XA PREPARE 'half'")
		if h := horizon(t, s, events()); !h.Exact || h.Cursor == "" {
			t.Errorf("horizon = %+v beside a prepared transaction of a session", h)
		}
	})
	eventually(t, "the session is gone", func() bool { return horizon(t, s, events()).Cursor == "" })
	d, err := s.Describe(t.Context(), events())
	if err != nil || !strings.Contains(strings.Join(d.Warnings, " "), "two-phase") {
		t.Errorf("warnings = %q, %v", d.Warnings, err)
	}
	exec(t, owner, "XA COMMIT 'half'")
	if h := horizon(t, s, events()); h.Cursor == "" {
		t.Errorf("horizon = %+v after the end of the prepared transaction", h)
	}
}

func count(t *testing.T, conn *sql.Conn, query string) int {
	t.Helper()
	var n int
	if err := conn.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The server remembers its transactions for as long as anybody asks for them
// more often than ten times a second.
func TestHorizonIsNotReadFromMemory(t *testing.T) {
	t.Parallel()
	url := mariatest.Start(t, mariatest.Options{}).New(t)
	s := open(t, mysql.Options{URL: url})
	owner, writer := connect(t, url), connect(t, url)
	exec(t, owner, eventsTable)
	stop := ask(t, connect(t, url), connect(t, url), connect(t, url))
	exec(t, writer, "BEGIN; INSERT INTO events VALUES (1, NOW(6))")
	exec(t, owner, "DO SLEEP(2.1)") // The horizon of who sees nothing is past the row now.
	// The askers of a busy machine may leave the server time to look anew.
	var seen []observer.Horizon
	eventually(t, "no warning beside somebody who has begun to ask all the time", func() bool {
		d, err := s.Describe(t.Context(), events())
		seen = append(seen, horizon(t, s, events()))
		return err == nil && len(d.Warnings) == 1 && strings.Contains(d.Warnings[0], "innodb_trx")
	})
	stop()
	for _, when := range []string{"soon after that", "and again", "and again"} {
		h := horizon(t, s, events())
		if seen = append(seen, h); h.Cursor == "" {
			t.Errorf("%s: horizon = %+v, want it to be there", when, h)
		}
	}
	exec(t, writer, "COMMIT")
	for _, h := range seen {
		if rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor}); len(rows) != 1 {
			t.Errorf("from the horizon %+v: %+v, want the row", h, rows)
		}
	}
}

// ask asks for the transactions without end, until stop is called. It returns
// once the first answers were given.
func ask(t *testing.T, conns ...*sql.Conn) (stop func()) {
	t.Helper()
	const look = "SELECT COUNT(*) FROM information_schema.innodb_trx"
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for _, conn := range conns {
		count(t, conn, look)
		done.Go(func() {
			for ctx.Err() == nil {
				if _, err := conn.ExecContext(t.Context(), look+"; DO SLEEP(0.01)"); err != nil {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}

// trx_started is in the system's time zone, here that of Central Europe: of two
// instants with one reading the earlier is taken.
func TestHorizonInTheNightsOfTheClocks(t *testing.T) {
	t.Parallel()
	conn := connect(t, mariatest.New(t))
	for reading, want := range map[string]string{
		"2026-07-01 12:00:00": "2026-07-01 10:00:00",
		"2026-12-01 12:00:00": "2026-12-01 11:00:00",
		"2026-03-29 01:59:59": "2026-03-29 00:59:59",
		"2026-03-29 03:00:00": "2026-03-29 01:00:00",
		"2026-10-25 01:59:59": "2026-10-24 23:59:59",
		"2026-10-25 02:30:00": "2026-10-25 00:30:00",
		"2026-10-25 03:00:00": "2026-10-25 02:00:00",
	} {
		var got string
		err := conn.QueryRowContext(t.Context(), mysql.BeganSQL("'"+reading+"'")).Scan(&got)
		if err != nil || got != want {
			t.Errorf("%s was %s, %v, want %s", reading, got, err, want)
		}
	}
}
