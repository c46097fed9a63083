package cluster_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

// longestGap is the longest that a type may go without a poll while its
// pollers change. The interval is a second; the rest is for a busy machine.
const longestGap = 30 * time.Second

// TestMigrationFromSpring rehearses docs/migration-from-spring.md: Java nodes
// poll, Go nodes join switched off, one is switched on, taken back, switched on
// again, then all, then the Java nodes are retired. The source sees no two polls
// of a type overlap, and no type waits for long.
func TestMigrationFromSpring(t *testing.T) {
	t.Parallel()
	for _, g := range []springtest.Generation{springtest.Spring6, springtest.Spring7} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			r := rehearse(t, g)
			r.onlyJava(t)
			r.deployed(t)
			r.canary(t)
			r.rolledBack(t)
			r.all(t)
			r.retired(t)
			checkHistory(t, r.memory, r.sink(), r.source.rows(t))
			r.check(t)
		})
	}
}

// rehearsal is a migration under way.
type rehearsal struct {
	host
	source postgresMarket
	javas  []*java
	nodes  map[string]*daemon
}

func rehearse(t *testing.T, g springtest.Generation) *rehearsal {
	t.Helper()
	s := openPostgres(t)
	s.exec(t, witnesses)
	s.orders(t, "old", 20)
	m := remember(t, pgtest.New(t))
	m.exec(t, g.Table())
	r := &rehearsal{host: newHost(t, m, s.url), source: s, nodes: map[string]*daemon{}}
	for range 2 {
		r.javas = append(r.javas, startJava(t, g, m, s))
	}
	return r
}

var watchedObservers = []string{
	"{id: orders, type: order, source: shop, table: watched_orders, key: order_id, timestamp: updated_at}",
	"{id: tasks, type: wes, source: shop, table: watched_tasks, key: task_id, timestamp: updated_at}",
	"{id: stock, type: inventory, source: shop, table: watched_stock, key: sku}",
}

// begin starts a Go node, switched on or off; one of that name is stopped first.
func (r *rehearsal) begin(t *testing.T, name string, enabled bool) {
	t.Helper()
	r.end(t, name)
	c := r.config(name, settings{ttl: javaTTL})
	c.Observers, c.KeyFormat, c.Disabled = watchedObservers, "spring", !enabled
	r.nodes[name] = r.launch(t, c).ready(t)
}

// end stops a Go node, if there is one of that name.
func (r *rehearsal) end(t *testing.T, name string) {
	t.Helper()
	if d := r.nodes[name]; d != nil {
		d.stops(t)
	}
}

// doctor wants a cluster without problems.
func (r *rehearsal) doctor(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		d := run(t, name+" doctor", filepath.Join(r.Folder, name), syscall.SysProcAttr{}, "doctor", "--watch", "2s")
		if code := d.ends(t, patience); code != 0 {
			return fmt.Errorf("doctor: exit code %d", code)
		}
		return nil
	})
}

func (r *rehearsal) onlyJava(t *testing.T) {
	t.Helper()
	r.goOn(t, 3)
}

// deployed has Go nodes that are ready and switched off.
func (r *rehearsal) deployed(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		r.begin(t, name, false)
	}
	r.doctor(t, "a")
	r.goOn(t, 3)
	if polls := r.memory.mustPolls(t); len(polls) != 0 {
		t.Fatalf("nodes that are switched off have polled: %+v", polls[0])
	}
}

// canary switches one node on. It and the Java nodes take turns.
func (r *rehearsal) canary(t *testing.T) {
	t.Helper()
	r.begin(t, "a", true)
	r.polled(t, 3, "a")
	r.goOn(t, 3)
	r.doctor(t, "a")
	for _, p := range r.memory.mustPolls(t) {
		if p.node != "a" {
			t.Fatalf("%s is switched off and has polled", p.node)
		}
	}
}

// rolledBack switches it off again, and on.
func (r *rehearsal) rolledBack(t *testing.T) {
	t.Helper()
	r.begin(t, "a", false)
	before := len(r.memory.mustPolls(t))
	r.goOn(t, 3)
	if after := len(r.memory.mustPolls(t)); after != before {
		t.Errorf("%d polls of a node that was switched off", after-before)
	}
	r.source.orders(t, "meanwhile", 5)
	r.begin(t, "a", true)
	r.polled(t, 2, "a")
}

func (r *rehearsal) all(t *testing.T) {
	t.Helper()
	for _, name := range []string{"b", "c"} {
		r.begin(t, name, true)
	}
	r.polled(t, 2, "a", "b", "c")
	r.goOn(t, 3)
	r.doctor(t, "b")
}

// retired stops the Java nodes one after the other.
func (r *rehearsal) retired(t *testing.T) {
	t.Helper()
	for _, j := range r.javas {
		j.retire(t)
		r.polled(t, 2, "a", "b", "c")
	}
	r.source.orders(t, "new", 5)
	if n, err := r.memory.number(t, `SELECT count(*) FROM int_lock l LEFT JOIN obs_lock o ON o.term = l.client_id WHERE o.term IS NULL`); err != nil || n != 0 {
		t.Errorf("%d locks of Java nodes are left: %v", n, err)
	}
	r.doctor(t, "c")
}
