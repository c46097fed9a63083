package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// statements are a result of rows that each have a key and nothing else.
type statements struct {
	rows   [][]string // of each statement
	open   int
	left   []string
	key    string
	fails  []error // of the next calls of Next
	silent time.Duration
	closed int
	gone   int
	begun  []int // the statements that were run
}

func (s *statements) Open(_ context.Context, n int) error {
	s.begun = append(s.begun, n)
	s.left = s.rows[n]
	s.open++
	return nil
}

func (s *statements) Next(ctx context.Context) (bool, error) {
	if s.silent > 0 {
		select {
		case <-ctx.Done():
			return false, source.Ended(ctx, "read rows")
		case <-time.After(s.silent):
		}
	}
	if len(s.fails) > 0 {
		err := s.fails[0]
		s.fails = s.fails[1:]
		return false, err
	}
	if len(s.left) == 0 {
		s.open--
		return false, nil
	}
	s.key, s.left = s.left[0], s.left[1:]
	return true, nil
}

func (s *statements) Failed(ctx context.Context, _ error) error {
	return source.Ended(ctx, "between rows")
}

func (s *statements) Close(context.Context) error {
	s.closed++
	return nil
}

func (s *statements) Left() source.Left           { return 0 }
func (s *statements) KeyText(int) []byte          { return []byte(s.key) }
func (s *statements) Append(*source.Builder, int) {}
func (s *statements) Cursor(int) ([]byte, time.Time, string) {
	return nil, time.Time{}, ""
}

var errLocked = errors.New("locked")

func (s *statements) Begin(context.Context) error { return nil }
func (s *statements) Leave()                      { s.gone++ }

func stream(t *testing.T, s *statements) *source.Stream {
	t.Helper()
	q := observer.Query{Table: "t", Key: []string{"k"}}
	selection, err := source.Select(q, []source.Column{{Name: "k"}}, "t")
	if err != nil {
		t.Fatal(err)
	}
	selection.Data = 0
	b, err := source.NewBuilder(q, selection)
	if err != nil {
		t.Fatal(err)
	}
	return source.NewStream(t.Context(), time.Minute, source.StreamOptions{
		Selection: selection, Statements: len(s.rows), Result: s, Cells: s, Builder: b,
		Waits: source.NewLockWaits(1, time.Minute, func(err error) bool { return errors.Is(err, errLocked) }), Restarter: s,
	})
}

func keys(rows observer.Rows) (keys []string) {
	for rows.Next() {
		keys = append(keys, rows.Row().Key)
	}
	return keys
}

func TestStreamRunsOneStatementAfterTheOther(t *testing.T) {
	t.Parallel()
	s := &statements{rows: [][]string{{"a", "b"}, nil, {"c"}}}
	rows := stream(t, s)
	if got := keys(rows); !slices.Equal(got, []string{"a", "b", "c"}) || rows.Next() {
		t.Errorf("keys %q", got)
	}
	if err := errors.Join(rows.Err(), rows.Close(), rows.Close()); err != nil || s.closed != 1 || rows.Next() {
		t.Errorf("%v, closed %d times", err, s.closed)
	}
}

// All statements before the first row begin again, as they see one snapshot. Once rows
// have come, or the end, nothing does.
func TestStreamBeginsAgainBeforeItsFirstRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows  [][]string
		begun []int
		keys  []string
	}{
		"rows":    {[][]string{{"a"}, {"b"}}, []int{0, 0, 1}, []string{"a", "b"}},
		"no rows": {[][]string{nil, nil}, []int{0, 0, 1}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &statements{rows: test.rows, fails: []error{errLocked}}
			rows := stream(t, s)
			got := keys(rows)
			if rows.Next() || rows.Err() != nil || s.gone != 1 || !slices.Equal(got, test.keys) || !slices.Equal(s.begun, test.begun) {
				t.Errorf("%s: keys %q, statements %v, left %d times, %v", name, got, s.begun, s.gone, rows.Err())
			}
			_ = rows.Close()
		})
	}
}

func TestStreamEndsWithSilence(t *testing.T) {
	t.Parallel()
	for _, silent := range []time.Duration{50 * time.Second, 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			rows := stream(t, &statements{rows: [][]string{{"a"}}, silent: silent})
			time.Sleep(time.Hour) // The reader may take its time.
			got := fmt.Sprintf("%q %t", keys(rows), errors.Is(rows.Err(), source.ErrSilent))
			if want := map[bool]string{false: `["a"] false`, true: `[] true`}[silent > time.Minute]; got != want {
				t.Errorf("silent for %s: %s, want %s", silent, got, want)
			}
			_ = rows.Close()
		})
	}
}
