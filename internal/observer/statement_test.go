package observer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// A source takes minutes to hand over its rows. No statement lasts longer than it
// may; rows with one timestamp are not parted where the source cannot go on among them, those without one are read, and a
// row that is committed meanwhile below the place of a later statement is not
// passed.
func TestLongReadIsManyStatements(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew)
		s.src.SetClock(1000)
		for i := range 100 {
			s.src.Add(observertest.At(key(i), "a", int64(1+i/30))) // Groups of 30 rows.
		}
		s.src.Add(observertest.At("null", "a", -1))
		for i := range 100 {
			s.src.Add(observertest.At(key(200+i), "a", int64(100+i)))
		}
		late := s.src.Begin() // The horizon waits for it.
		src := slowly{s.src}
		time.AfterFunc(50*time.Second, func() {
			late.Put("late", "a")
			late.Commit()
		})
		s.pollOf(src)
		equal(t, "events", len(s.checkLog()) >= 201, true)
		reads := s.src.Reads()
		// 30 rows are the least of a statement over a group; 11 s, the others.
		if len(reads) < 8 || len(reads) > 20 {
			t.Errorf("%d statements", len(reads))
		}
		s.pollOf(src)
		equal(t, "events", len(s.checkLog()), 202)
	})
}

// slowly is a source that takes a second for each row.
type slowly struct{ observer.Source }

func (s slowly) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := s.Source.Read(ctx, q, in)
	return slowRows{rows}, err
}

type slowRows struct{ observer.Rows }

func (r slowRows) Next() bool {
	time.Sleep(time.Second)
	return r.Rows.Next()
}

// Where every read returns every row, a statement is not parted.
func TestReadOfEverythingIsOneStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectSnapshot)
		s.put(0, 40)
		s.takes(time.Second, 1)
		s.poll()
		equal(t, "events", len(s.checkLog()), 40)
		equal(t, "statements", len(s.src.Reads()), 1)
	})
}

// The source sorts for a minute before its first row: to end its statements by
// their whole time would never come to the second.
func TestTimeOfAStatementBeginsWithItsFirstRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew)
		s.put(0, 9)
		first := true
		s.src.Step = func(call string) error {
			if call == "next" && first {
				first = false
				time.Sleep(time.Minute)
			}
			return nil
		}
		s.poll()
		equal(t, "events", len(s.checkLog()), 9)
		equal(t, "statements", len(s.src.Reads()), 1)
	})
}
