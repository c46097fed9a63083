package observer_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// TestSimulatedSnapshots has snapshots break off, or end too early without an
// error, as a failing source or a view without its join may do. Nothing may be
// gone after a read that failed or was empty, and never more than max-gone, or
// than a person has accepted, once.
func TestSimulatedSnapshots(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		live := rapid.IntRange(1, 80).Draw(t, "live rows")
		s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) {
			s.ChunkRows = rapid.IntRange(1, 10).Draw(t, "rows a chunk")
			s.MaxGone = rapid.SampledFrom([]float64{0.01, 0.2, 1}).Draw(t, "share that may be gone")
		})
		s.put(0, live)
		s.poll()
		short := &shortened{Source: s.src, rows: rapid.IntRange(0, live).Draw(t, "rows read")}
		if rapid.Bool().Draw(t, "fails") {
			short.err = errBroken
		}
		_, err := s.observer().Poll(t.Context(), short, s.db.Acquire())

		missing, want := live-short.rows, live-short.rows
		switch {
		case short.err != nil:
			want = 0
			tally.Count("failed")
		case short.rows == 0, missing > max(10, int(s.spec.MaxGone*float64(live))):
			want = 0
			tally.Count("disbelieved")
			if !errors.Is(err, observer.ErrMassDisappearance) {
				t.Fatalf("got %v", err)
			}
		case err != nil:
			t.Fatal(err)
		case missing > 0:
			tally.Count("believed")
		}
		if gone := live - len(s.db.Live(stream)); gone != want {
			t.Fatalf("%d of %d rows are gone after %d were read, want %d", gone, live, short.rows, want)
		}
		if errors.Is(err, observer.ErrMassDisappearance) && rapid.Bool().Draw(t, "accepted") {
			s.db.Accept(stream)
			short.rows = rapid.IntRange(0, live).Draw(t, "rows read then")
			_, err := s.observer().Poll(t.Context(), short, s.db.Acquire())
			gone := live - short.rows
			if refused := gone > missing; refused {
				tally.Count("more than was accepted")
				gone = 0
				if !errors.Is(err, observer.ErrMassDisappearance) {
					t.Fatalf("%d rows were accepted, and %d are gone: %v", missing, live-short.rows, err)
				}
			} else if err != nil {
				t.Fatalf("%d rows were accepted, and %d are gone: %v", missing, gone, err)
			}
			tally.Count("accepted")
			if got := live - len(s.db.Live(stream)); got != gone {
				t.Fatalf("%d rows are gone, want %d", got, gone)
			}
			if c := s.db.Cursor(stream); err == nil && c.Refusal+c.Accepted != "" {
				t.Fatalf("what was accepted is still there: %+v", c)
			}
		}
		// All are there again, and so is everybody who follows the events.
		s.poll()
		if got := len(s.db.Live(stream)); got != live {
			t.Fatalf("%d live rows, want %d", got, live)
		}
		s.checkLog()
	})
	tally.Demand(t, "failed", "disbelieved", "believed", "accepted", "more than was accepted")
}

// shortened is a source whose reads end after so many rows, with an error or
// without.
type shortened struct {
	*observertest.Source
	rows int
	err  error
}

func (s *shortened) Read(ctx context.Context, q observer.Query, r observer.Range) (observer.Rows, error) {
	rows, err := s.Source.Read(ctx, q, r)
	return &shortRows{rows, s.rows, s.err}, err
}

type shortRows struct {
	observer.Rows
	left int
	err  error
}

func (r *shortRows) Next() bool {
	r.left--
	return r.left >= 0 && r.Rows.Next()
}

func (r *shortRows) Err() error { return r.err }
