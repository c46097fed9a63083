package lockdb_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// TestReasonsOfAnyBytesAreNoted has a source that words its refusals in bytes
// which PostgreSQL does not store, as one does whose locale is not UTF-8. If
// they were not noted, every node would try again, without a pause.
func TestReasonsOfAnyBytesAreNoted(t *testing.T) {
	t.Parallel()
	const said, noted = "Kennwort f\xfcr \x00 falsch", "Kennwort f\ufffdr \ufffd falsch"
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g, now := acquire(t, db, "order-observer-poll"), time.Now()
		err := db.Turns().NoteStream(t.Context(), g, turn.StreamTaken{
			Stream: "orders", Type: "order", At: now, Started: now, Finished: now, Outcome: turn.Error, Reason: said, Failures: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Streams().LastError(t.Context(), "orders"); err != nil || got != noted {
			t.Errorf("noted %q, %v", got, err)
		}
		if polls, err := db.Turns().Polls(t.Context(), 1); err != nil || polls[0].Reason != noted {
			t.Errorf("history %+v, %v", polls, err)
		}
		if a := refuse(t, db, lockdb.Account{ID: "erp", Salt: []byte{1}, Digest: []byte{1}, Reason: said}); a.Reason != noted {
			t.Errorf("account %+v", a)
		}
	})
}

// TestActsOfAnyBytesAreNoted has an operator whose terminal is not set to UTF-8.
func TestActsOfAnyBytesAreNoted(t *testing.T) {
	t.Parallel()
	const actor, why, name, noted = "J\xfcrgen", "gepr\xfcft \x00", "J\ufffdrgen", "gepr\ufffdft \ufffd"
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, op, who := t.Context(), db.Operations(), lockdb.By{Actor: actor, Reason: why}
		if _, err := op.Pause(ctx, "orders", who, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := op.Resume(ctx, "orders", who, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Sweeps().Start(ctx, observer.Sweep{Stream: "orders", Kind: observer.SweepBackfill}, who); err != nil {
			t.Fatal(err)
		}
		if err := op.Note(ctx, lockdb.Did(who, "retry-dead", "orders", "")); err != nil {
			t.Fatal(err)
		}
		acts, err := op.Acts(ctx, lockdb.ActFilter{Actor: actor})
		if err != nil || len(acts) != 4 {
			t.Fatalf("%+v, %v", acts, err)
		}
		for _, act := range acts {
			if act.Actor != name || act.Action != "start-sweep" && act.Detail != noted {
				t.Errorf("noted %+q", act)
			}
		}
	})
}
