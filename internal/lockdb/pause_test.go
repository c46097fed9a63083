package lockdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

// TestAPauseEndsByItself has a pause whose time is over by the clock of the database. Whoever
// looks sees it at once; the next turn notes it, once, and lets commits through.
func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		const length = 3 * time.Second
		began := time.Now()
		pause(t, db, lockdb.By{Actor: "alice", Reason: "the move"}, length, true)
		p := stateOf(t, db).Pause
		if left := p.Until.Sub(p.At); !stateOf(t, db).Paused || p.By != "alice" || p.Reason != "the move" || left < length-time.Second || left > length+time.Second {
			t.Errorf("while it is paused: %+v", p)
		}
		if found := turnOf(t, db); !found.Paused || !found.PausedUntil.Equal(p.Until) {
			t.Errorf("the turn of a paused stream: %+v", found)
		}
		if _, err := s.Commit(t.Context(), chunk(cursorOf(t, s, "orders"), 1)); err == nil {
			t.Error("a commit to a paused stream")
		}
		for stateOf(t, db).Paused {
			if time.Since(began) > time.Minute {
				t.Fatal("it is still paused")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if lasted := time.Since(began); lasted < length-time.Second {
			t.Errorf("it was over after %s", lasted)
		}
		if p := stateOf(t, db).Pause; p != (status.Pause{}) {
			t.Errorf("after it: %+v", p)
		}
		for range 2 {
			if found := turnOf(t, db); found.Paused || !found.PausedUntil.IsZero() {
				t.Errorf("the turn after it: %+v", found)
			}
		}
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		wantActs(t, db, "pause alice for 3s: the move", "resume  the pause of alice was until "+p.Until.Format(time.RFC3339))
		if n := count(t, url, `SELECT count(*) FROM obs_cursor WHERE paused`); n != 0 {
			t.Error("paused is still set")
		}
	})
}

// TestAPauseIsNeverMadeShorter has operators that do not know of each other.
func TestAPauseIsNeverMadeShorter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		pause(t, db, by("alice"), time.Hour, true)
		pause(t, db, by("bob"), time.Minute, false)
		if by := stateOf(t, db).Pause.By; by != "alice" {
			t.Errorf("it is the pause of %s", by)
		}
		pause(t, db, by("bob"), 2*time.Hour, true)
		pause(t, db, lockdb.By{Actor: "carol", Reason: "a migration"}, 0, true)
		pause(t, db, by("dave"), 0, false)
		pause(t, db, by("dave"), 1000*time.Hour, false)
		if p := stateOf(t, db).Pause; p.By != "carol" || p.Reason != "a migration" || !p.Until.IsZero() || p.At.IsZero() {
			t.Errorf("in the end: %+v", p)
		}
		wantActs(t, db, "pause alice for 1h0m0s", "pause bob for 2h0m0s", "pause carol a migration")
		// A pause that is over is ended before the next, and on record.
		const back = `UPDATE obs_cursor SET paused_until = '2020-01-01 00:00:00.000000'`
		exec(t.Context(), t, url, map[string]string{"postgres": back, "sqlite": back})
		pause(t, db, by("erin"), time.Minute, true)
		wantActs(t, db, "resume erin the pause of carol was until 2020-01-01T00:00:00Z", "pause erin for 1m0s")
	})
}

// TestAResumeIsOnRecord has one that lets an account be tried again, of a stream that was
// never polled, and one that ends nothing.
func TestAResumeIsOnRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		resume := func(want bool) {
			t.Helper()
			changed, err := db.Operations().Resume(t.Context(), "orders", lockdb.By{Actor: "alice", Reason: "a new password"}, "oracle://app@db/WMS")
			if changed != want || err != nil {
				t.Errorf("%v, %v", changed, err)
			}
		}
		resume(false)
		wantActs(t, db)
		err := db.Accounts().RefuseAccount(t.Context(), lockdb.Account{ID: "oracle://app@db/WMS", Node: "a", Reason: "ORA-01017", Salt: []byte{1}, Digest: []byte{2}})
		if err != nil {
			t.Fatal(err)
		}
		resume(true)
		wantActs(t, db, "resume alice the refused account oracle://app@db/WMS may be tried again: a new password")
		resume(false)
		if left, err := db.Accounts().Account(t.Context(), "oracle://app@db/WMS"); len(left) > 0 || err != nil {
			t.Errorf("refused still: %+v, %v", left, err)
		}
		pause(t, db, by("bob"), 0, true)
		resume(true)
		wantActs(t, db, "pause bob ", "resume alice a new password")
	})
}

func pause(t *testing.T, db *lockdb.DB, who lockdb.By, lasts time.Duration, want bool) {
	t.Helper()
	if changed, err := db.Operations().Pause(t.Context(), "orders", who, lasts); changed != want || err != nil {
		t.Errorf("%s: %v, %v", who.Actor, changed, err)
	}
}

func stateOf(t *testing.T, db *lockdb.DB) lockdb.StreamStatus {
	t.Helper()
	all, err := db.Streams().Statuses(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

func turnOf(t *testing.T, db *lockdb.DB) turn.Stream {
	t.Helper()
	found, err := db.Turns().Streams(t.Context(), []string{"orders"})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	return found["orders"]
}

// wantActs wants these to be the last acts, as action, actor and detail.
func wantActs(t *testing.T, db *lockdb.DB, want ...string) {
	t.Helper()
	acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: max(1, len(want))})
	var got []string
	for _, a := range acts {
		got = append([]string{fmt.Sprintf("%s %s %s", a.Action, a.Actor, a.Detail)}, got...)
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("acts %q, want %q, %v", got, want, err)
	}
}
