package lockdb_test

import (
	"errors"
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/turn"
)

// TestTheDeadAreNotListedAsAlive kills one node of several: a command, a node that
// watches, and the doctor all know, and mistake no other for dead.
func TestTheDeadAreNotListedAsAlive(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		killed, asleep := holdElsewhere(t, url, never, "a"), holdElsewhere(t, url, never, "b")
		w := watch(t, url)
		older := uuid.NewString() // A node whose death cannot be seen.
		for _, boot := range []string{w.boot, older} {
			if err := w.db.Nodes().Beat(t.Context(), turn.Node{BootID: boot, Name: "node"}); err != nil {
				t.Fatal(err)
			}
		}
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_node SET liveness = '' WHERE boot_id = ?1`,
			"postgres": `UPDATE obs_node SET liveness = '' WHERE boot_id = $1`,
		}, older)
		asleep.signal(t, syscall.SIGSTOP)
		report := func(db *lockdb.DB) func() (map[string]bool, error) {
			return func() (map[string]bool, error) {
				r, err := db.Report(t.Context(), nil)
				gone := make(map[string]bool)
				for _, n := range r.Nodes {
					gone[n.BootID] = n.Gone
				}
				return gone, err
			}
		}
		looks := map[string]func() (map[string]bool, error){
			"a command": report(db), "a node that watches": report(w.db),
			"the doctor": func() (map[string]bool, error) {
				found, err := examine.Run(t.Context(), examine.Options{URL: url})
				if len(found.Blind) > 0 {
					err = errors.Join(err, fmt.Errorf("blind: %+v", found.Blind))
				}
				gone := make(map[string]bool)
				for _, m := range found.Members {
					gone[m.BootID] = m.Gone
				}
				return gone, err
			},
		}
		check := func(who string, want map[string]bool) error {
			got, err := looks[who]()
			if err == nil && !maps.Equal(got, want) {
				err = fmt.Errorf("%s sees who is gone as %v, want %v", who, got, want)
			}
			return err
		}
		want := map[string]bool{killed.boot: false, asleep.boot: false, w.boot: false, older: false}
		for who := range looks {
			if err := check(who, want); err != nil {
				t.Error(err)
			}
		}
		killed.kill()
		want[killed.boot] = true
		for who := range looks {
			eventually(t, func() error { return check(who, want) })
		}
	})
}

// TestNodeThatBeatsIsNotListedAsDead has a node whose death cannot be seen, and that
// gives a sign of life between two looks.
func TestNodeThatBeatsIsNotListedAsDead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		h := holdElsewhere(t, url, never)
		h.kill()
		eventually(t, func() error {
			r, err := db.Report(t.Context(), nil)
			if err == nil && (len(r.Nodes) != 1 || !r.Nodes[0].Gone) {
				err = fmt.Errorf("a node that was killed: %+v", r.Nodes)
			}
			return err
		})
		beside, dialect := raw(t, url)
		beat := map[string]string{
			"sqlite":   `UPDATE obs_node SET seen_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
			"postgres": `UPDATE obs_node SET seen_at = clock_timestamp()`,
		}[dialect]
		over, beats := make(chan struct{}), make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				select {
				case <-over:
					beats <- nil
					return
				case <-time.After(20 * time.Millisecond):
					_, err = beside.ExecContext(t.Context(), beat)
				}
			}
			beats <- err
		}()
		eventually(t, func() error {
			r, err := db.Report(t.Context(), nil)
			if err == nil && (len(r.Nodes) != 1 || r.Nodes[0].Gone) {
				err = fmt.Errorf("a node that beats: %+v", r.Nodes)
			}
			return err
		})
		close(over)
		if err := <-beats; err != nil {
			t.Error(err)
		}
	})
}
