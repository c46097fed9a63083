package file_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/file"
	"github.com/observerd/observerd/internal/sink/sinktest"
)

var batch, lines = sinktest.Batch, sinktest.Lines

func tempPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "events.jsonl")
}

func open(t *testing.T, path string) *file.Sink {
	t.Helper()
	s, err := file.Open(t.Context(), file.Options{Path: path, CreateFolder: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closeSink(t *testing.T, s *file.Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func deliver(t *testing.T, s *file.Sink, batch []events.Event) {
	t.Helper()
	for len(batch) > 0 { // As a relay does.
		n, err := sinktest.Deliver(t.Context(), s, batch)
		if n == 0 || err != nil {
			t.Fatalf("stored %d of %d: %v", n, len(batch), err)
		}
		batch = batch[n:]
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds\n%s\nwant\n%s", filepath.Base(path), got, want)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		path := tempPath(t)
		var faults sinktest.Faults
		return sinktest.Harness{
			Open: func(ctx context.Context, _ sink.Term) (sink.Sink, error) {
				s, err := file.Open(ctx, file.Options{Path: path})
				if err != nil {
					return nil, err
				}
				s.Writes(faults.Write)
				return s, nil
			},
			Stored: func() ([]events.Event, error) {
				text, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				return sinktest.Read(text)
			},
			Tear: faults.Tear, Refuse: faults.Refuse,
		}
	})
}

// A folder that nobody has asked for is a mistake of the path, most likely.
func TestMissingFolderIsRefused(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new")
	_, err := file.Open(t.Context(), file.Options{Path: filepath.Join(folder, "events.jsonl")})
	if want := "the folder " + folder + " does not exist; create it, or set create-folder: true"; err == nil || err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestNewFileAndFolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "folders", "events.jsonl")
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 3))
	wantContent(t, path, lines(batch("orders", 1, 3)))
	for name, forbidden := range map[string]fs.FileMode{path: 0o137, filepath.Dir(path): 0o027} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&forbidden != 0 {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
}

func TestSameEventTwiceInABatch(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	deliver(t, open(t, path), append(batch("orders", 1, 2), batch("orders", 1, 3)...))
	wantContent(t, path, lines(batch("orders", 1, 3)))
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s, err := file.Open(t.Context(), file.Options{Path: path, Remember: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	deliver(t, s, batch("orders", 1, 6))
	deliver(t, s, batch("orders", 3, 6))
	wantContent(t, path, lines(batch("orders", 1, 6)))
	deliver(t, s, batch("orders", 2, 2))
	wantContent(t, path, lines(batch("orders", 1, 6), batch("orders", 2, 2)))
}

func TestHeld(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	if _, err := file.Open(t.Context(), file.Options{Path: path}); !errors.Is(err, file.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	deliver(t, s, batch("orders", 1, 1))
	closeSink(t, s)
	closeSink(t, s) // Twice does no harm.
	deliver(t, open(t, path), batch("orders", 1, 2))
	wantContent(t, path, lines(batch("orders", 1, 2)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailedSync(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 1))
	failure := errors.New("input/output error")
	s.BeforeSync(func() error { return failure })
	if n, err := sinktest.Deliver(t.Context(), s, batch("orders", 2, 3)); n != 0 || !errors.Is(err, failure) {
		t.Errorf("got %d, %v", n, err)
	}
	wantContent(t, path, lines(batch("orders", 1, 1)))
	s.BeforeSync(func() error { return nil })
	deliver(t, s, batch("orders", 2, 3))
	wantContent(t, path, lines(batch("orders", 1, 3)))
}

// TestForeignLinesBehindOurs has somebody else append while the sink is open, and
// take it back.
func TestForeignLinesBehindOurs(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 1))
	for _, note := range []string{"a note", "a note\n"} {
		write(t, path, lines(batch("orders", 1, 1))+note)
		if n, err := sinktest.Deliver(t.Context(), s, batch("orders", 2, 2)); n != 0 || !errors.Is(err, file.ErrForeign) {
			t.Errorf("behind %q: got %d, %v, want ErrForeign", note, n, err)
		}
		wantContent(t, path, lines(batch("orders", 1, 1))+note)
	}
	write(t, path, lines(batch("orders", 1, 1)))
	deliver(t, s, batch("orders", 2, 2))
	wantContent(t, path, lines(batch("orders", 1, 2)))
}

// TestSymbolicLink has a path that leads to a file in another folder, also after
// that was moved away.
func TestSymbolicLink(t *testing.T) {
	t.Parallel()
	link, target := tempPath(t), tempPath(t)
	must(t, os.Symlink(target, link))
	s := open(t, link)
	deliver(t, s, batch("orders", 1, 2))
	must(t, os.Rename(target, target+".1"))
	deliver(t, s, batch("orders", 3, 3))
	wantContent(t, target+".1", lines(batch("orders", 1, 2)))
	wantContent(t, target, lines(batch("orders", 3, 3)))
	if led, err := os.Readlink(link); err != nil || led != target {
		t.Errorf("the link leads to %q (%v)", led, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "")
	for name, path := range map[string]string{
		"a folder":          dir,
		"a device":          os.DevNull,
		"a file as folder":  filepath.Join(dir, "plain", "events.jsonl"),
		"a link to nowhere": filepath.Join(dir, "link"),
	} {
		if name == "a link to nowhere" {
			must(t, os.Symlink(filepath.Join(dir, "missing", "x"), path))
		}
		if _, err := file.Open(t.Context(), file.Options{Path: path}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestLargeBatchIsTakenInParts(t *testing.T) {
	t.Parallel()
	large := batch("orders", 1, 5)
	for i := range large {
		large[i].Subject = strings.Repeat("x", 300<<10)
	}
	if n, err := sinktest.Deliver(t.Context(), open(t, tempPath(t)), large); n == 0 || n > 4 || err != nil {
		t.Errorf("got %d, %v, want a part of about 1 MiB", n, err)
	}
}

func wantSameContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		t.Errorf("the file differs, %d bytes where %d are wanted", len(got), len(want))
	}
}

// TestLongFile opens files that are longer than what is read of their end, one
// of them ending in a line that is longer than that.
func TestLongFile(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"many lines": 1 << 18, "huge lines": 9 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			var all []events.Event
			for seq := int64(1); len(all)*size < 12<<20; seq++ {
				all = append(all, batch("orders", seq, seq)...)
				all[seq-1].Subject = strings.Repeat("x", size)
			}
			write(t, path, lines(all)+`{"specversion"`)
			s := open(t, path)
			deliver(t, s, all[len(all)-1:])
			deliver(t, s, batch("stock", 1, 1))
			wantSameContent(t, path, lines(all, batch("stock", 1, 1)))
		})
	}
}

func openLogged(t *testing.T, path string) (*file.Sink, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := file.Open(t.Context(), file.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, &log
}
