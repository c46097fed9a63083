package lockdb_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// reading is a chunk that notes how far the reading of all rows has come.
func reading(c observer.Cursor, g observer.Generation) observer.Chunk {
	ch := chunk(c, 0)
	ch.Generation = &g
	return ch
}

func generationOf(t *testing.T, s *lockdb.Store, c observer.Cursor) observer.Generation {
	t.Helper()
	g, err := s.Generation(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGenerationIsKeptWithItsChunk(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		grant := acquire(t, db, "inventory-observer-poll")
		s := db.Store(grant)
		c := mustCommit(t, s, chunk(cursorOf(t, s, "stock"), 3))
		if g := generationOf(t, s, c); !reflect.DeepEqual(g, observer.Generation{}) {
			t.Errorf("before the first: %+v", g)
		}
		at := time.Date(2026, 11, 23, 4, 5, 6, 0, time.UTC)
		running := observer.Generation{
			Reading: "what is read", Key: "it's/50%25/日本", Seen: bytes.Repeat([]byte{0, 0xff, '\\'}, 500_000), Rows: 1 << 40,
			StartedAt: at, Took: 90 * time.Second,
		}
		judging := running
		judging.Complete = true
		ended := observer.Generation{Reading: "what is read", Seen: []byte{}, Rows: 1 << 41, StartedAt: at, FinishedAt: at.Add(time.Hour), Took: time.Hour}
		for _, want := range []observer.Generation{running, judging, ended, running} {
			c = mustCommit(t, s, reading(c, want))
			got := generationOf(t, s, c)
			got.StartedAt, got.FinishedAt = got.StartedAt.UTC(), got.FinishedAt.UTC()
			got.Seen = append([]byte{}, got.Seen...) // SQLite has no empty one but nil.
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read %.200v, wrote %.200v", got, want)
			}
			if stream := streamOf(t, db, "stock"); stream.Unread != want.FinishedAt.IsZero() {
				t.Errorf("with a generation that was finished at %s: %+v", want.FinishedAt, stream)
			}
		}
		// A chunk that says nothing of it leaves it, and so does one that is refused.
		stale := c
		c = mustCommit(t, s, chunk(c, 2))
		other := running
		other.Key = "further"
		if _, err := s.Commit(t.Context(), reading(stale, other)); !errors.Is(err, observer.ErrConflict) {
			t.Errorf("stale cursor: %v", err)
		}
		grant.Term = uuid.NewString()
		if _, err := db.Store(grant).Commit(t.Context(), reading(c, other)); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("ended term: %v", err)
		}
		if got := generationOf(t, s, c); got.Key != running.Key || !bytes.Equal(got.Seen, running.Seen) {
			t.Errorf("it was overwritten: %.200v", got)
		}
		with := chunk(c, 2)
		with.Generation = &other
		if c = mustCommit(t, s, with); generationOf(t, s, c).Key != other.Key {
			t.Error("a chunk with new rows did not take its generation along")
		}
	})
}

func TestGenerationIsReportedAndForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "inventory-observer-poll"))
		for _, stream := range []string{"kept", "reset", "forgotten"} {
			c := mustCommit(t, s, chunk(cursorOf(t, s, stream), 5))
			mustCommit(t, s, reading(c, observer.Generation{Reading: "r", Key: "k", Seen: []byte{1}, Rows: 3, StartedAt: time.Now(), Took: time.Minute}))
		}
		for stream, o := range map[string]lockdb.ResetOptions{"kept": {KeepCursor: true}, "reset": {}, "forgotten": {Forget: true}} {
			if err := db.Operations().Reset(t.Context(), stream, by("bob"), o); err != nil {
				t.Fatal(err)
			}
		}
		r, err := db.Report(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Generations) != 1 {
			t.Fatalf("generations %+v, want the one of the kept cursor", r.Generations)
		}
		g := r.Generations[0]
		if g.Observer != "kept" || g.Rows != 3 || g.Of != 5 || g.StartedAt.IsZero() || !g.FinishedAt.IsZero() || g.Took != time.Minute {
			t.Errorf("reported %+v", g)
		}
	})
}
