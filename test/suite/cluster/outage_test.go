package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// errNothingYet reports that what is waited for has not begun.
var errNothingYet = errors.New("nothing yet")

// down stops a server; up starts it again.
func down(t *testing.T, server *pgtest.Server, mode pgtest.Mode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Stop(ctx, mode); err != nil {
		t.Fatal(err)
	}
}

func up(t *testing.T, server *pgtest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCoordinationDatabaseGoesAndComesBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	m := remember(t, server.URL("postgres"))
	source := openPostgres(t)
	h := newHost(t, m, source.url)
	down(t, server, pgtest.Fast)
	d := h.start(t, "a", settings{})
	eventually(t, func() error { return d.answers(t, "/readyz", http.StatusServiceUnavailable) })
	d.says(t, "Waiting for the coordination database")
	healthy(t, d)
	up(t, server)
	d.ready(t)
	quiet := source.busy(t)
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate} {
		grows(t, m)
		down(t, server, mode)
		eventually(t, func() error { return d.answers(t, "/readyz", http.StatusServiceUnavailable) })
		healthy(t, d)
		up(t, server)
		d.ready(t)
	}
	grows(t, m)
	quiet()
	checkHistory(t, m, h.sink(), source.rows(t))
}

// TestTypeGoesOnAfterARestartInItsPoll takes the coordination database away within a
// poll, until the release of the type's lock has failed. The node that waits for the
// lock then is the one that holds it, and alive.
func TestTypeGoesOnAfterARestartInItsPoll(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	m := remember(t, server.URL("postgres"))
	source := openPostgres(t)
	h := newHost(t, m, source.url)
	source.order(t, "unfinished")
	proxied, proxy := netfault.StartBefore(t, source.url)
	release := make(chan struct{})
	reading := holdRead(proxy, "orders", release)
	d := h.start(t, "a", settings{source: proxied, ttl: longTTL})
	received(t, reading, "the poll")
	down(t, server, pgtest.Immediate)
	close(release)
	d.says(t, "Error releasing lock", "order-observer-poll")
	up(t, server)
	takenOver(t, m, time.Now())
	if d.Log.Count("Lease freed", `"rule":"own-term-ended"`) == 0 {
		t.Error("the node does not say that it freed its own lease")
	}
	checkHistory(t, m, h.sink(), source.rows(t))
}

// healthy fails unless the node is well, whatever its databases do.
func healthy(t *testing.T, d *daemon) {
	t.Helper()
	eventually(t, func() error { // A machine with much else to do may not answer in time.
		code, text, err := d.get(t, "/healthz")
		if errors.Is(err, errEnded) || err == nil && code != http.StatusOK {
			t.Fatalf("%s is not well: %d %s %v", d.Name(), code, text, err)
		}
		return err
	})
}

// grows waits for events that were not there before.
func grows(t *testing.T, m memory) {
	t.Helper()
	const query = `SELECT count(*) FROM obs_event`
	before := int64(-1)
	eventually(t, func() error {
		n, err := m.number(t, query)
		switch {
		case err != nil:
			return err
		case before < 0:
			before = n
		case n > before:
			return nil
		}
		return fmt.Errorf("%d events, as before", n)
	})
}

func TestSourceGoesAndComesBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	m := remember(t, pgtest.New(t))
	source := openPostgresAt(t, server.URL("postgres"))
	source.db.SetMaxIdleConns(0) // None of the test's own outlives the server.
	h := newHost(t, m, source.url)
	d := h.start(t, "a", settings{}).ready(t)
	source.orders(t, "before", 20)
	m.becomes(t, `SELECT (count(*) >= 20)::int FROM obs_event WHERE stream = 'orders'`)
	down(t, server, pgtest.Immediate)
	eventually(t, func() error {
		return d.counted(t, "scheduler_observer_polls_total", `type="order"`, `outcome="error"`)
	})
	healthy(t, d)
	d.ready(t) // A source is not what a node needs for that.
	up(t, server)
	source.orders(t, "after", 20)
	checkHistory(t, m, h.sink(), source.rows(t))
}
