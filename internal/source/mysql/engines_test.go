package mysql

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
)

// None of the engines of a plain server hides its transactions.
func TestEnginesOfAServer(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{URL: mariatest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	if state, err := c.state(t.Context()); state.engine != "" || err != nil {
		t.Errorf("foreign is %q, %v", state.engine, err)
	}
	known, err := c.rows(t.Context(), "read the engines", strings.Replace(enginesSQL, "'innodb', ", "", 1))
	if err != nil || len(known) != 1 || string(known[0][1]) != "InnoDB" {
		t.Errorf("engines %q, %v, want InnoDB where it is not left out", known, err)
	}
}
