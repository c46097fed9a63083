package mysql

import (
	"strconv"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/mariatest"
)

// After a restart, or on another server behind the same address, the number of
// a lost connection is that of a session which nobody wanted to end.
func TestKillSparesWhoeverHasTheNumberNow(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{URL: mariatest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	take := func() *session {
		c, err := s.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	lost, other := take(), take()
	defer lost.release()
	defer other.release()
	own := lost.conn.id
	lost.conn.id = other.conn.id
	lost.kill()
	s.background.Wait()
	if _, err := other.rows(t.Context(), "ask", "SELECT 1"); err != nil {
		t.Errorf("a session that has the number of another was ended: %v", err)
	}
	lost.conn.id = own
	lost.kill()
	s.background.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for {
		found, err := other.rows(t.Context(), "look", "SELECT 1 FROM information_schema.processlist WHERE id = ?", strconv.FormatUint(own, 10))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the lost connection is still there: %v", err)
		}
		if len(found) == 0 {
			return
		}
	}
}
