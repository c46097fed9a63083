package lockdb_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
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
