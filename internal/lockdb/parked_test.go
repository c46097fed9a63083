package lockdb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
)

// TestParkedEvents parks events in the step of the offset, has an operator retry and drop
// them, and the relay end the retry.
func TestParkedEvents(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, log, ops := t.Context(), db.Log(), db.Operations()
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 6))
		batch, err := log.After(ctx, "orders", 0, 6)
		if _, claimErr := log.Claim(ctx, "inbox", 2); err != nil || claimErr != nil {
			t.Fatal(err, claimErr)
		}
		step := events.Step{Events: batch[:4], Parked: []events.Parking{{Seq: 2, Reason: "too large"}, {Seq: 4, Reason: "follows"}}}
		wrong := step
		wrong.Events = slices.Clone(batch[:4])
		wrong.Events[0].ID = batch[5].ID
		if err := log.Move(ctx, "inbox", []events.Step{wrong}, 2); !errors.Is(err, events.ErrLogChanged) {
			t.Errorf("a step of another log: %v", err)
		}
		if err := log.Move(ctx, "inbox", []events.Step{step}, 1); !errors.Is(err, events.ErrStale) {
			t.Errorf("a step of an earlier term: %v", err)
		}
		wantParked(t, db, lockdb.ParkedFilter{})
		for range 2 { // An answer may be lost.
			if err := log.Move(ctx, "inbox", []events.Step{step}, 2); err != nil {
				t.Fatal(err)
			}
		}
		wantParked(t, db, lockdb.ParkedFilter{}, "inbox orders 2 too large", "inbox orders 4 follows")
		wantParked(t, db, lockdb.ParkedFilter{Sinks: []string{"other"}})
		wantParked(t, db, lockdb.ParkedFilter{Key: batch[3].Subject, Streams: []string{"orders"}, Since: time.Hour}, "inbox orders 4 follows")
		exec(ctx, t, url, both(`DELETE FROM obs_event`)) // Retention takes them there.

		keys, err := log.Parked(ctx, "inbox")
		if err != nil || len(keys) != 2 || keys[0].Retry || keys[0].Events != 1 || keys[0].Oldest.IsZero() || keys[0].Now.Before(keys[0].Oldest) {
			t.Errorf("parked keys: %+v, %v", keys, err)
		}
		found, err := ops.Parked(ctx, lockdb.ParkedFilter{Limit: 1, Data: true})
		if err != nil || len(found) != 1 || string(found[0].Data) != string(batch[1].Data) {
			t.Fatalf("found %+v, %v", found, err)
		}
		by := lockdb.By{Actor: "me", Reason: "fixed"}
		for sink, want := range map[string]int64{"other": 0, "inbox": 1} {
			if n, err := ops.RetryParked(ctx, []int64{found[0].Number}, lockdb.Did(by, "retry-parked", sink, "p1")); n != want || err != nil {
				t.Errorf("a retry at %s marked %d, %v, want %d", sink, n, err, want)
			}
		}
		if keys, err = log.Parked(ctx, "inbox"); err != nil || !slices.ContainsFunc(keys, func(k events.ParkedKey) bool { return k.Retry && k.Subject == batch[1].Subject }) {
			t.Errorf("parked keys: %+v, %v", keys, err)
		}
		late, err := log.Retries(ctx, "inbox", 10, 1<<20)
		if err != nil || fmt.Sprint(placesOf(late)) != "[orders 2]" || late[0].ID != batch[1].ID || string(late[0].Data) != string(batch[1].Data) {
			t.Errorf("to be retried: %v, %v", late, err)
		}
		for name, end := range map[string]func(epoch int64) error{
			"repark": func(epoch int64) error { return log.Repark(ctx, "inbox", late[0], "still too large", epoch) },
			"unpark": func(epoch int64) error { return log.Unpark(ctx, "inbox", late, epoch) },
		} {
			if err := end(1); !errors.Is(err, events.ErrStale) {
				t.Errorf("%s of an earlier term: %v", name, err)
			}
		}
		if err := log.Repark(ctx, "inbox", late[0], "still too large", 2); err != nil {
			t.Fatal(err)
		}
		wantParked(t, db, lockdb.ParkedFilter{}, "inbox orders 2 still too large", "inbox orders 4 follows")
		if late, err := log.Retries(ctx, "inbox", 10, 1<<20); err != nil || len(late) > 0 {
			t.Errorf("to be retried: %v, %v", late, err)
		}
		for range 2 { // An operator may have dropped it.
			if err := log.Unpark(ctx, "inbox", late, 2); err != nil {
				t.Fatal(err)
			}
		}
		rest, err := ops.Parked(ctx, lockdb.ParkedFilter{})
		if err != nil || len(rest) != 1 {
			t.Fatal(rest, err)
		}
		if n, err := ops.DropParked(ctx, []int64{rest[0].Number, 999}, lockdb.Did(by, "drop-parked", "inbox", "p2")); n != 1 || err != nil {
			t.Errorf("dropped %d, %v", n, err)
		}
		wantParked(t, db, lockdb.ParkedFilter{})
		acts, err := ops.Acts(ctx, lockdb.ActFilter{Limit: 10})
		if err != nil || len(acts) != 2 || acts[0].Action != "drop-parked" || acts[1].Detail != "p1: fixed" {
			t.Errorf("acts: %+v, %v", acts, err)
		}
	})
}

// TestARetryIsOfAWholeKey has more of a key to deliver than a batch takes, and an event come
// to it meanwhile.
func TestARetryIsOfAWholeKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, log, ops := t.Context(), db.Log(), db.Operations()
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 4))
		exec(ctx, t, url, both(`UPDATE obs_event SET subject = 'k' WHERE seq < 4`))
		batch, err := log.After(ctx, "orders", 0, 4)
		if _, claimErr := log.Claim(ctx, "inbox", 2); err != nil || claimErr != nil {
			t.Fatal(err, claimErr)
		}
		park := func(from, to int64) {
			t.Helper()
			step := events.Step{After: from - 1, Events: batch[from-1 : to]}
			for seq := from; seq <= to; seq++ {
				step.Parked = append(step.Parked, events.Parking{Seq: seq, Reason: "too large"})
			}
			if err := log.Move(ctx, "inbox", []events.Step{step}, 2); err != nil {
				t.Fatal(err)
			}
		}
		park(1, 2)
		found, err := ops.Parked(ctx, lockdb.ParkedFilter{Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if n, err := ops.RetryParked(ctx, []int64{found[0].Number}, lockdb.Did(lockdb.By{Actor: "me"}, "retry-parked", "inbox", "p1")); n != 2 || err != nil {
			t.Errorf("marked %d, %v, want both of the key", n, err)
		}
		park(3, 4)
		for _, want := range []string{"[orders 1]", "[orders 2]", "[orders 3]", "[]"} {
			late, err := log.Retries(ctx, "inbox", 1, 1<<20)
			if got := fmt.Sprint(placesOf(late)); err != nil || got != want {
				t.Errorf("to be retried are %s, %v, want %s", got, err, want)
			}
			if err := log.Unpark(ctx, "inbox", late, 2); err != nil {
				t.Fatal(err)
			}
		}
		wantParked(t, db, lockdb.ParkedFilter{}, "inbox orders 4 too large")
	})
}

// TestARetryTakesWhatIsParkedMeanwhile has a relay park an event of a key in the moment in which
// an operator has the key delivered.
func TestARetryTakesWhatIsParkedMeanwhile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		if !strings.HasPrefix(url, "postgres") {
			t.Skip("SQLite has one writer at a time.")
		}
		ctx, log, ops := t.Context(), db.Log(), db.Operations()
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
		exec(ctx, t, url, both(`UPDATE obs_event SET subject = 'k'`))
		batch, err := log.After(ctx, "orders", 0, 2)
		if _, claimErr := log.Claim(ctx, "inbox", 2); err != nil || claimErr != nil {
			t.Fatal(err, claimErr)
		}
		if err := log.Move(ctx, "inbox", []events.Step{{After: 0, Events: batch[:1], Parked: []events.Parking{{Seq: 1, Reason: "too large"}}}}, 2); err != nil {
			t.Fatal(err)
		}
		found, err := ops.Parked(ctx, lockdb.ParkedFilter{})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		// The operator's transaction is open while the relay parks.
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, `UPDATE obs_parked SET retry_at = now() WHERE sink = 'inbox' AND subject = 'k'`); err != nil {
			t.Fatal(err)
		}
		if err := log.Move(ctx, "inbox", []events.Step{{After: 1, Events: batch[1:], Parked: []events.Parking{{Seq: 2, Reason: "follows"}}}}, 2); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		late, err := log.Retries(ctx, "inbox", 10, 1<<20)
		if err != nil || len(late) != 2 {
			t.Errorf("to be retried are %d events, %v, want both of the key", len(late), err)
		}
	})
}

func wantParked(t *testing.T, db *lockdb.DB, f lockdb.ParkedFilter, want ...string) {
	t.Helper()
	found, err := db.Operations().Parked(t.Context(), f)
	var got []string
	for _, p := range found {
		got = append(got, fmt.Sprint(p.Sink, " ", p.Stream, " ", p.Seq, " ", p.Reason))
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parked are %q, %v, want %q", got, err, want)
	}
}
