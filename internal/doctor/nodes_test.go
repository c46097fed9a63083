package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/waittest"
)

// member is a node that works as the configuration of the tests says.
func member(name string) turn.Node {
	return turn.Node{BootID: uuid.NewString(), Name: name, Version: "1.0", ConfigHash: "aaaaaaaaaaaa", Types: []string{"order"}, Sinks: []string{"file"}}
}

func beat(t *testing.T, db *lockdb.DB, nodes ...turn.Node) {
	t.Helper()
	for _, n := range nodes {
		if err := db.Nodes().Beat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// polled notes a turn of the orders that long ago.
func polled(t *testing.T, db *lockdb.DB, ago time.Duration) {
	t.Helper()
	g, err := db.Leases().Acquire(t.Context(), lock.Request{Key: orderKey, Region: "DEFAULT", TTL: time.Minute, Name: orderLock, Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := now.Add(-ago)
	if err := db.Turns().TakeTurn(t.Context(), g, turn.Taken{Type: "order", At: at, Started: at, Finished: at, Node: "a", Outcome: turn.OK}); err != nil {
		t.Fatal(err)
	}
	if err := db.Leases().Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

func TestClusterInOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		db := p.observerd(t)
		p.begin(t, "a")
		p.begin(t, "b")
		polled(t, db, 0)
		found := p.examine(t, 0)
		healthy(t, found, superuser)
		says(t, found, "nodes", doctor.OK, "2 nodes are alive, 2 of them at work")
		says(t, found, "configuration", doctor.OK)
		says(t, found, "types", doctor.OK)
		says(t, found, "sinks", doctor.OK)
	})
}

// begin has a node that shows that it lives, until the test ends. dies takes that
// away, as its death would; the node's row stays.
func (p *subject) begin(t *testing.T, name string) (dies func()) {
	t.Helper()
	m := member(name)
	log := slog.New(slog.DiscardHandler)
	db, err := lockdb.Open(lockdb.Options{URL: p.url, BootID: m.BootID, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	live := db.NewLiveness(liveness.Options{Logger: log})
	<-live.Start(t.Context())
	beat(t, db, m)
	dies = sync.OnceFunc(func() {
		if err := errors.Join(live.Stop(context.WithoutCancel(t.Context())), db.Close()); err != nil {
			t.Error(err)
		}
		if path, ok := strings.CutPrefix(p.url, "sqlite:"); ok && t.Context().Err() == nil {
			// Who is killed leaves its file behind.
			if err := os.WriteFile(path+"-alive-"+m.BootID, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(dies)
	return dies
}

// TestKilledNodesAreNotAtWork has more dead nodes than living ones.
func TestKilledNodesAreNotAtWork(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		p.begin(t, "a")
		dies := p.begin(t, "b")
		p.begin(t, "c")()
		polled(t, p.observerd(t), 0)
		waittest.Eventually(t, time.Minute, func() error {
			found := p.examine(t, 0)
			if text := printed(found); !strings.Contains(text, "2 nodes are alive, 2 of them at work") || !strings.Contains(text, "1 node has died within the last minute: c") {
				return errors.New(text)
			}
			healthy(t, found, superuser)
			return nil
		})
		dies()
		p.begin(t, "b")
		waittest.Eventually(t, time.Minute, func() error {
			found := p.examine(t, 0)
			text := printed(found)
			if !strings.Contains(text, "2 nodes are alive, 2 of them at work") || !strings.Contains(text, "2 nodes have died within the last minute: b, c") {
				return errors.New(text)
			}
			if strings.Contains(text, "live nodes are named") {
				t.Errorf("a node that came back counts twice:\n%s", text)
			}
			return nil
		})
	})
}

func TestNodesThatDiffer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		says(t, p.examine(t, 0), "nodes", doctor.Warning, "no node of observerd has written its heartbeat")
		db := p.observerd(t)
		off := member("canary")
		off.Types, off.ConfigHash = nil, "dddddddddddd"
		beat(t, db, off)
		says(t, p.examine(t, 0), "nodes", doctor.Warning, "switched off")

		a, b := member("a"), member("a")
		b.Version, b.ConfigHash = "1.1", "bbbbbbbbbbbb"
		b.Types, b.Unreachable, b.Sinks = []string{"order", "wes"}, []string{"wes"}, []string{"file", "bus"}
		beat(t, db, a, b)
		found := p.examine(t, 0)
		says(t, found, "nodes", doctor.Warning, "different versions: 1.0 (a, canary); 1.1 (a)")
		says(t, found, "nodes", doctor.Warning, "the other nodes cannot detect the death of node a")
		says(t, found, "nodes", doctor.Warning, "cannot reach a source of: wes")
		// The node that is switched off does not count.
		says(t, found, "configuration", doctor.Warning, "aaaaaaaaaaaa (a); bbbbbbbbbbbb (a)")
		says(t, found, "types", doctor.Warning, "the type wes is known to node a alone")
		says(t, found, "types", doctor.Note, "the type order has never been polled")
		says(t, found, "sinks", doctor.Warning, "the sink bus is known to 1 of 2 nodes")

		p.want.ConfigHash = "cccccccccccc"
		p.want.Locks = append(p.want.Locks, doctor.Lock{Name: "returns-observer-poll", Region: "DEFAULT", TTL: time.Minute, Type: "returns", Interval: time.Minute, Enabled: true})
		found = p.examine(t, 0)
		says(t, found, "configuration", doctor.Note, "this configuration (cccccccccccc) is not that of any node at work")
		says(t, found, "types", doctor.Warning, "no node at work polls the type returns")
	})
}

func TestTurnsOutOfTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		db := p.observerd(t)
		beat(t, db, member("a"))
		polled(t, db, time.Hour)
		says(t, p.examine(t, 0), "types", doctor.Problem, "the last turn of the type order is 1h", "a row of a foreign holder that is dated in the future keeps it")
		// At this time of day it is not polled, or it was not until a moment ago.
		for _, until := range []time.Duration{time.Hour, -time.Minute} {
			end := time.Now().Add(until)
			for i := range p.want.Locks {
				p.want.Locks[i].Suspended = func(at time.Time) bool { return at.Before(end) }
			}
			says(t, p.examine(t, 0), "types", doctor.OK)
		}
	})
}

// TestNodeSeenInTheFuture means that the database's clock went back.
func TestNodeSeenInTheFuture(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		beat(t, p.observerd(t), member("a"))
		p.exec(t, `UPDATE obs_node SET seen_at = '2999-01-01 00:00:00.000000'`)
		says(t, p.examine(t, 0), "rows-in-the-future", doctor.Problem, "node a was last seen in")
	})
}

// TestPausedObservers has a pause with an end, one without, and one that is over.
func TestPausedObservers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		db := p.observerd(t)
		says(t, p.examine(t, 0), "paused", doctor.OK, "no observer is paused")
		for id, lasts := range map[string]time.Duration{"stock": 2 * time.Hour, "orders": 0, "tasks": time.Millisecond} {
			if _, err := db.Operations().Pause(t.Context(), id, lockdb.By{Actor: "alice", Reason: "the move"}, lasts); err != nil {
				t.Fatal(err)
			}
		}
		found := p.examine(t, 10*time.Millisecond)
		says(t, found, "paused", doctor.Note, "the observer stock is paused", "and for 2h0m0s more, by alice: the move", "observers resume stock")
		says(t, found, "paused", doctor.Note, "the observer orders is paused", ", by alice: the move")
		if text := printed(found); strings.Contains(text, "tasks is paused") {
			t.Errorf("a pause that is over:\n%s", text)
		}
	})
}

// TestPoisonRows has an observer whose rows are all poison, and one with a single such row.
func TestPoisonRows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		p.observerd(t)
		says(t, p.examine(t, 0), "poison", doctor.OK, "no observer has poison rows")
		p.exec(t, `INSERT INTO obs_cursor (stream, last_seq) VALUES ('orders', 681), ('stock', 0)`)
		for i, d := range []string{"'orders', 'column note is too odd'", "'stock', 'column at is NULL'", "'stock', 'column at is NULL'", "'stock', 'column id is NULL in the key'"} {
			p.exec(t, fmt.Sprintf(`INSERT INTO obs_dead (stream, reason, key, digest, raw, first_at, last_at)
				VALUES (%s, '', '%d', '', '2020-01-01 00:00:00.000000', '2020-01-01 00:00:00.000000')`, d, i))
		}
		found := p.examine(t, 0)
		says(t, found, "poison", doctor.Problem, "the observer stock has 3 poison rows, mostly because column at is NULL", "no event at all", "dead list --observer stock")
		says(t, found, "poison", doctor.Warning, "the observer orders has 1 poison row, mostly because column note is too odd")
	})
}

// TestOffsetBeyondTheLog hides events from a sink.
func TestOffsetBeyondTheLog(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		beat(t, p.observerd(t), member("a"))
		p.exec(t, `INSERT INTO obs_cursor (stream, last_seq) VALUES ('orders', 681)`)
		p.exec(t, `INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at) VALUES ('file', 'orders', 681, 1, '2020-01-01 00:00:00.000000')`)
		says(t, p.examine(t, 0), "sinks", doctor.OK)
		p.exec(t, `UPDATE obs_sink_offset SET last_seq = 723`)
		says(t, p.examine(t, 0), "sinks", doctor.Problem, "the offset of the sink file is 723 in the stream orders, which ends at 681")
	})
}
