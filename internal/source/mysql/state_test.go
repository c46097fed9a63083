package mysql

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// inSnapshot opens a session and a snapshot, as whoever asks for the state.
func inSnapshot(t *testing.T, address string) *session {
	t.Helper()
	s, err := Open(Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.release)
	if err := c.snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStateIsReadInOrder lets the one statement of MariaDB wait before the transactions: a
// statement that begins meanwhile and is in a transaction then is seen there. Were they read
// first, one that begins a transaction and ends between the two would be seen nowhere.
func TestStateIsReadInOrder(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	c := inSnapshot(t, address)
	const nonce = "in order"
	texts := c.conn.stateSQL(nonce)
	if len(texts) != 2 || texts[0] != processSQL[true] || !strings.HasSuffix(texts[1], "UNION ALL"+trxSQL) {
		t.Fatalf("%q are not the processes, and then one statement with the transactions last", texts)
	}
	slow := strings.TrimSuffix(texts[1], trxSQL) + " SELECT 'pause', SLEEP(2), NULL, NULL, NULL, NULL, NULL\nUNION ALL" + trxSQL
	writer, watcher := mariatest.Connect(t, address, nil), mariatest.Connect(t, address, nil)
	var thread string
	if err := writer.QueryRowContext(t.Context(), "SELECT CAST(CONNECTION_ID() AS CHAR)").Scan(&thread); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.ExecContext(t.Context(), "CREATE TABLE written (id int)"); err != nil {
		t.Fatal(err)
	}
	// The server answers from memory where other tests ask it, too.
	waittest.Eventually(t, time.Minute, func() error {
		answered := make(chan error, 1)
		var s state
		go func() {
			processes, err := c.rows(t.Context(), "look", texts[0])
			rows, slept := c.rows(t.Context(), "wait", slow)
			if err = errors.Join(err, slept); err == nil {
				s, err = stateOf(append(processes, rows...), nonce)
			}
			answered <- err
		}()
		waittest.Eventually(t, 20*time.Second, func() error {
			var n int
			return watcher.QueryRowContext(t.Context(), "SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep' AND info LIKE ? LIMIT 1", "%"+nonce+"%").Scan(&n)
		})
		_, err := writer.ExecContext(t.Context(), "BEGIN; INSERT INTO written VALUES (1)")
		if err != nil {
			t.Fatal(err)
		}
		began := sleeper(t, address)
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		if _, err := writer.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(s.running, func(r running) bool { return r.thread == began }) {
			t.Errorf("%+v with a statement that began after them", s.running)
		}
		if !s.fresh {
			return errors.New("the server answers from its memory")
		}
		if !writes(s.open, thread) {
			t.Errorf("%+v without the transaction that began before them", s.open)
		}
		return nil
	})
}

// TestStateLeavesTheTurn to another node that has it: the transactions are not even looked at.
func TestStateLeavesTheTurn(t *testing.T) {
	t.Parallel()
	address := mariatest.Start(t, mariatest.Options{}).New(t)
	c := inSnapshot(t, address)
	other := mariatest.Connect(t, address, nil)
	turn := func(sql string) {
		t.Helper()
		if _, err := other.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		turn("DO GET_LOCK('" + turnLock + "', 1)")
		s, err := c.state(t.Context())
		if err != nil || s.fresh || len(s.open) > 0 || s.now.IsZero() {
			t.Errorf("%+v, %v while another has the turn", s, err)
		}
		turn("DO RELEASE_LOCK('" + turnLock + "')")
		if s, err = c.state(t.Context()); err != nil || !s.fresh {
			t.Errorf("%+v, %v afterwards, want a fresh one", s, err)
		}
		<-time.After(2 * cacheAge)
	}
}
