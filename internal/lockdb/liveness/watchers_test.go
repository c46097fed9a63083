package liveness

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

const (
	nodeOfBoot = `
		INSERT INTO obs_node (boot_id, name, version, backend, config_hash, types, unreachable, sinks, liveness, started_at, seen_at)
		VALUES ('boot-%[1]d', 'node-%[1]d', '', '', '', '', '', '', 'session', now(), now())`
	looksAtSessions = `SELECT COALESCE(max(generic_plans), 0) FROM pg_prepared_statements WHERE statement LIKE '%pg_locks%'`
)

// TestNodesBehindTheWatchersRest counts how often each node looks at the sessions of all.
func TestNodesBehindTheWatchersRest(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	execute := func(text string) {
		t.Helper()
		if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	nodes := nodesOf(t, db, 5)
	const looks = 5
	for _, tc := range []struct {
		name   string
		change func()
		want   [5]int // looks at the sessions; -1 for a node that is gone
	}{
		{"all are there", func() {}, [5]int{looks, looks, looks, 1, 1}},
		{"one has another configuration", func() { execute(`UPDATE obs_node SET config_hash = 'other' WHERE boot_id = 'boot-1'`) }, [5]int{looks, looks, looks, looks, 1}},
		{"it has ours again", func() { execute(`UPDATE obs_node SET config_hash = ''`) }, [5]int{looks, looks, looks, 1, 1}},
		// A look that finds somebody absent is followed by another one.
		{"one has died", func() { die(t, db, nodes[1]) }, [5]int{looks, -1, looks, looks, looks}},
		{"it is forgotten", func() { execute(`DELETE FROM obs_node WHERE boot_id = 'boot-2'`) }, [5]int{looks, -1, looks, looks, 1}},
		{"a lease of another is left", func() {
			execute(`INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('k', 'DEFAULT', 'term', now())`)
			execute(`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness)
			         VALUES ('k', 'DEFAULT', 'term', 1, '', '', '', 1000, now(), 'boot-0', 'session')`)
		}, [5]int{looks, -1, looks, looks, looks}},
	} {
		tc.change()
		for i, p := range nodes {
			if tc.want[i] < 0 {
				continue
			}
			p.restFor, p.restsUntil = time.Hour, time.Time{}
			before := countOf(t, p)
			for range looks {
				s, err := p.look(t.Context(), []string{"DEFAULT"})
				if err != nil {
					t.Fatal(err)
				}
				if len(s.nodes) < 4 && !s.resting {
					t.Errorf("%s: %d nodes are known", tc.name, len(s.nodes))
				}
				if rests := tc.want[i] < looks; rests != (s.pace == longestPace) {
					t.Errorf("%s: node %d looks again after %s", tc.name, i+1, s.pace)
				}
			}
			if got := countOf(t, p) - before; got != tc.want[i] {
				t.Errorf("%s: node %d has looked at the sessions %d times in %d looks, want %d", tc.name, i+1, got, looks, tc.want[i])
			}
		}
	}
}

// TestRestingNodeSeesTheDeathOfAllWatchers looks as a node does that rests.
func TestRestingNodeSeesTheDeathOfAllWatchers(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	nodes := nodesOf(t, db, watchers+1)
	last := nodes[watchers]
	last.restFor = time.Hour
	look := func() (absent int) {
		t.Helper()
		s, err := last.look(t.Context(), []string{"DEFAULT"})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.nodes {
			if alive, known := s.alive(n.boot); known && !alive {
				absent++
			}
		}
		return absent
	}
	if n := look(); n != 0 {
		t.Fatalf("%d nodes are absent", n)
	}
	die(t, db, nodes[:watchers]...)
	if absent := look(); absent != 0 {
		t.Errorf("a node that rests takes %d for absent", absent)
	}
	last.restsUntil = time.Now()
	for range 3 { // From now on it looks each time.
		if absent := look(); absent != watchers {
			t.Errorf("%d nodes are absent, want %d", absent, watchers)
		}
	}
}

// TestManyNodesRestTheLonger asks each of many nodes for how long it rests.
func TestManyNodesRestTheLonger(t *testing.T) {
	t.Parallel()
	alive := make(map[string]bool)
	var s snapshot
	for i := range 9 {
		boot := fmt.Sprint("boot-", i+1)
		alive[boot] = true
		s.nodes = append(s.nodes, node{sign: sign{boot: boot, liveness: BySession}})
	}
	s.alive = func(boot string) (bool, bool) { return alive[boot], true }
	rests := func(want ...int) {
		t.Helper()
		for i, n := range s.nodes {
			p := &SessionPresence{bootID: n.boot, restFor: time.Second}
			if got := p.rest(s); alive[n.boot] && got != time.Duration(want[i])*time.Second {
				t.Errorf("node %d of %d rests for %s, want %d s", i+1, len(s.nodes), got, want[i])
			}
		}
	}
	rests(0, 0, 0, 1, 1, 1, 2, 2, 2)
	alive["boot-2"] = false // The next ones look on, until the row of the dead node has aged.
	rests(0, -1, 0, 0, 0, 0, 0, 2, 2)
	alive["boot-1"], alive["boot-3"] = false, false
	rests(-1, -1, -1, 0, 0, 0, 0, 0, 0)
	s.nodes = s.nodes[3:]
	rests(0, 0, 0, 1, 1, 1)
	for i := range 90 {
		boot := fmt.Sprint("boot-0", i)
		alive[boot] = true
		s.nodes = append(s.nodes, node{sign: sign{boot: boot, liveness: BySession}})
	}
	if got := (&SessionPresence{bootID: "boot-9", restFor: time.Second}).rest(s); got != longestRests*time.Second {
		t.Errorf("the last of many rests for %s", got)
	}
}

// nodesOf shows so many nodes, boot-1 to boot-n.
func nodesOf(t *testing.T, db *sqldb.DB, n int) []*SessionPresence {
	t.Helper()
	nodes := make([]*SessionPresence, n)
	for i := range nodes {
		nodes[i] = newSessionPresence(db, fmt.Sprint("boot-", i+1))
		if err := nodes[i].appear(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes[i].vanish(context.Background()) })
		if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(fmt.Sprintf(nodeOfBoot, i+1))); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// die ends the sessions of nodes, and waits until the server has ended them, too.
func die(t *testing.T, db *sqldb.DB, nodes ...*SessionPresence) {
	t.Helper()
	var pids []string
	for _, p := range nodes {
		pids = append(pids, p.PID)
		if err := p.vanish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Eventually(t, time.Minute, func() error {
		var left int
		err := db.Main.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE pid::text = ANY ($1)`, pids).Scan(&left)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d sessions are left", left)
		}
		return err
	})
}

func countOf(t *testing.T, p *SessionPresence) (n int) {
	t.Helper()
	if err := p.conn.QueryRow(t.Context(), looksAtSessions).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
