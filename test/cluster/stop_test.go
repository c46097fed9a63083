package cluster_test

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

// shutdownTimeout is that of the configuration of a [host]'s nodes.
const shutdownTimeout = 8 * time.Second

// TestTermInAPoll asks a node to stop while it reads a source that does not
// answer.
func TestTermInAPoll(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		proxied, proxy := through(t, source.url)
		release := make(chan struct{})
		defer close(release)
		reading := strike(proxy, func(request []byte) bool {
			return bytes.Contains(request, []byte("orders"))
		}, 1, netfault.Fault{Hold: release})
		d := h.start(t, "a", settings{source: proxied})
		received(t, reading, "the poll")
		if n, err := m.polling(t, "a"); err != nil || n == 0 {
			t.Fatalf("%d locks of types are held in the poll: %v", n, err)
		}
		d.signal(t, syscall.SIGTERM)
		// The locks are given back at once, however long the process then waits
		// for a source that says nothing.
		err := waittest.Within(t.Context(), shutdownTimeout, func() error {
			n, err := m.held(t, "a")
			if err == nil && n != 0 {
				err = fmt.Errorf("%d locks are held after %s", n, shutdownTimeout)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if code := d.ends(t, patience); code != 0 { // It has a limit of its own, and would say so.
			t.Errorf("exit code %d", code)
		}
		if n, err := m.number(t, `SELECT count(*) FROM obs_node`); err != nil || n != 0 {
			t.Errorf("%d nodes count as alive: %v", n, err)
		}
		// What was abandoned is taken up at once: no lease stands in the way.
		source.order(t, "next")
		h.start(t, "b", settings{})
		checkHistory(t, m, h.sink(), source.rows(t))
	})
}
