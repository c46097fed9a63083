package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/file"
	"github.com/observerd/observerd/internal/sink/sinktest"
)

// moments are when something happens to the file: at once, or in the middle of
// the next batch.
var moments = map[string]func(s *file.Sink, do func() error) error{
	"between batches": func(_ *file.Sink, do func() error) error { return do() },
	"before a write": func(s *file.Sink, do func() error) error {
		s.BeforeWrite(sync.OnceValue(do))
		return nil
	},
	"before a sync": func(s *file.Sink, do func() error) error {
		s.BeforeSync(sync.OnceValue(do))
		return nil
	},
}

// atEachMoment runs a test with a sink that has stored first.
func atEachMoment(t *testing.T, first []events.Event,
	test func(t *testing.T, s *file.Sink, path string, happens func(do func() error)),
) {
	for name, at := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			s := open(t, path)
			deliver(t, s, first)
			test(t, s, path, func(do func() error) { must(t, at(s, do)) })
		})
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	first, second, third := batch("orders", 1, 2), batch("orders", 3, 4), batch("orders", 5, 6)
	for name, rotate := range map[string]func(path string) error{
		"moved":          func(path string) error { return os.Rename(path, path+".1") },
		"removed":        os.Remove,
		"folder removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atEachMoment(t, first, func(t *testing.T, s *file.Sink, path string, happens func(func() error)) {
				happens(func() error { return rotate(path) })
				deliver(t, s, append(first[1:2:2], second...)) // A repeat is known beyond the rotation.
				deliver(t, s, third)
				deliver(t, s, second)
				wantContent(t, path, lines(second, third))
				if _, err := file.Open(t.Context(), file.Options{Path: path}); !errors.Is(err, file.ErrHeld) {
					t.Errorf("the new file is not locked: %v", err)
				}
			})
		})
	}
}

// TestRotatedFileHoldsWholeLines says what a file is that was moved away in the
// middle of a batch: the batch stands in it, too.
func TestRotatedFileHoldsWholeLines(t *testing.T) {
	t.Parallel()
	first, second := batch("orders", 1, 2), batch("orders", 3, 4)
	atEachMoment(t, first, func(t *testing.T, s *file.Sink, path string, happens func(func() error)) {
		happens(func() error { return os.Rename(path, path+".1") })
		deliver(t, s, second)
		want := lines(first, second)
		if strings.HasSuffix(t.Name(), "between_batches") {
			want = lines(first)
		}
		wantContent(t, path+".1", want)
	})
}

// TestRotatedOverAndOver has no attempt succeed until the relay gives up.
func TestRotatedOverAndOver(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	s.BeforeWrite(func() error {
		if attempts++; attempts == 3 {
			cancel()
		}
		return os.Rename(path, fmt.Sprint(path, ".", attempts))
	})
	if n, err := sinktest.Deliver(ctx, s, batch("orders", 1, 2)); n != 0 || !errors.Is(err, context.Canceled) || attempts != 3 {
		t.Errorf("got %d, %v after %d attempts, want the end of the context after 3", n, err, attempts)
	}
	s.BeforeWrite(func() error { return nil })
	deliver(t, s, batch("orders", 1, 2))
	wantContent(t, path, lines(batch("orders", 1, 2)))
}

// TestSleeperFindsItsFileTaken is a relay that slept while the file was
// rotated and another process took the new one.
func TestSleeperFindsItsFileTaken(t *testing.T) {
	t.Parallel()
	first, second := batch("orders", 1, 1), batch("orders", 2, 2)
	atEachMoment(t, first, func(t *testing.T, sleeper *file.Sink, path string, happens func(func() error)) {
		var successor *file.Sink
		happens(func() (err error) {
			must(t, os.Rename(path, path+".1"))
			successor = open(t, path)
			return nil
		})
		if n, err := sinktest.Deliver(t.Context(), sleeper, second); n != 0 || !errors.Is(err, file.ErrHeld) {
			t.Errorf("got %d, %v, want ErrHeld", n, err)
		}
		deliver(t, successor, second)
		wantContent(t, path, lines(second))
	})
}

// TestRotationWhileStopped moves the file away that a crash has left. What was torn
// is delivered again, and stands whole in the next file.
func TestRotationWhileStopped(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	torn := lines(batch("orders", 1, 2)) + lines(batch("orders", 3, 3))[:40]
	write(t, path, torn)
	must(t, os.Rename(path, path+".1"))
	deliver(t, open(t, path), batch("orders", 3, 4))
	wantContent(t, path, lines(batch("orders", 3, 4)))
	wantContent(t, path+".1", torn)
}

// TestShorterFileHalts is what copytruncate of logrotate does. Nothing is stored
// until somebody has moved the file away, or has started the process anew.
func TestShorterFileHalts(t *testing.T) {
	t.Parallel()
	first, second := batch("orders", 1, 3), batch("orders", 4, 20)
	for name, left := range map[string]int{"empty": 0, "a torn line": 10, "whole lines": len(lines(first[:1]))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atEachMoment(t, first, func(t *testing.T, s *file.Sink, path string, happens func(func() error)) {
				happens(func() error { return os.Truncate(path, int64(left)) })
				for range 3 {
					wantHalted(t, s, path, second)
				}
				// The batch that was under way has made it longer than it was.
				must(t, os.Truncate(path, 1<<20))
				wantHalted(t, s, path, second)

				must(t, os.Rename(path, path+".1"))
				deliver(t, s, second)
				wantContent(t, path, lines(second))
			})
		})
	}
}

func wantHalted(t *testing.T, s *file.Sink, path string, batch []events.Event) {
	t.Helper()
	n, err := sinktest.Deliver(t.Context(), s, batch)
	if n != 0 || !errors.Is(err, sink.ErrHalted) {
		t.Fatalf("got %d, %v, want ErrHalted", n, err)
	}
	for _, word := range []string{path, "copytruncate", "docs/operations.md", "restart"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not mention %s", err, word)
		}
	}
}

// TestShorterFileAfterARestart goes on with what is left. A batch that was written
// behind the cut and not believed is recognised.
func TestShorterFileAfterARestart(t *testing.T) {
	t.Parallel()
	first, second := batch("orders", 1, 3), batch("orders", 4, 5)
	atEachMoment(t, first, func(t *testing.T, s *file.Sink, path string, happens func(func() error)) {
		happens(func() error { return os.Truncate(path, 0) })
		wantHalted(t, s, path, second)
		closeSink(t, s)
		deliver(t, open(t, path), second)
		if got, err := os.ReadFile(path); err != nil || string(got) != lines(second) {
			t.Errorf("%v: the file holds\n%s", err, got)
		}
	})
}

// TestShorterFileIsNotFilledUp has a write or a sync fail in a file that became
// shorter: to cut the failed lines off must not put zeros where the others were.
func TestShorterFileIsNotFilledUp(t *testing.T) {
	t.Parallel()
	failure := errors.New("input/output error")
	for name, before := range map[string]func(s *file.Sink, do func() error){
		"write": (*file.Sink).BeforeWrite, "sync": (*file.Sink).BeforeSync,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			s := open(t, path)
			deliver(t, s, batch("orders", 1, 20))
			before(s, func() error { return errors.Join(failure, os.Truncate(path, 0)) })
			if n, err := sinktest.Deliver(t.Context(), s, batch("orders", 21, 21)); n != 0 || !errors.Is(err, failure) {
				t.Errorf("got %d, %v", n, err)
			}
			wantHalted(t, s, path, batch("orders", 21, 21))
			if got, err := os.ReadFile(path); err != nil || strings.Contains(string(got), "\x00") {
				t.Errorf("%v: the file holds %q", err, got)
			}
		})
	}
}
