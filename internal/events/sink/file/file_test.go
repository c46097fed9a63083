package file_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/events/sink/file"
)

func batch(stream string, from, to int64) (batch []events.Event) {
	for seq := from; seq <= to; seq++ {
		batch = append(batch, events.Event{
			ID: events.NewID(stream, 0, "key", seq, nil), Stream: stream, Seq: seq, Type: events.TypeNewOrder,
			Data: []byte(`{"order_id":"ORD-1","note":"a \"b\" ü"}`),
		})
	}
	return batch
}

func lines(batches ...[]events.Event) string {
	var text []byte
	for _, batch := range batches {
		for i := range batch {
			text = append(events.AppendJSON(text, &batch[i]), '\n')
		}
	}
	return string(text)
}

func tempPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "events.jsonl")
}

func open(t *testing.T, path string) *file.Sink {
	t.Helper()
	s, err := file.Open(t.Context(), file.Options{Path: path})
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
		n, err := s.Deliver(t.Context(), batch)
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

func TestDeliver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "folders", "events.jsonl")
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 3))
	deliver(t, s, batch("stock", 1, 2))
	deliver(t, s, batch("orders", 4, 4))
	wantContent(t, path, lines(batch("orders", 1, 3), batch("stock", 1, 2), batch("orders", 4, 4)))
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

// TestLostAcknowledgement delivers again what was stored already, in the same
// session and after a restart.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 5))
	deliver(t, s, batch("orders", 1, 5))
	deliver(t, s, batch("stock", 1, 5))
	closeSink(t, s)
	s = open(t, path)
	deliver(t, s, batch("orders", 1, 8))
	deliver(t, s, batch("stock", 3, 6))
	wantContent(t, path, lines(batch("orders", 1, 5), batch("stock", 1, 5), batch("orders", 6, 8), batch("stock", 6, 6)))
}

// TestSequencesBeginAnew is why the sink compares ids: the coordination
// database was made anew and counts from 1 again.
func TestSequencesBeginAnew(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := open(t, path)
	deliver(t, s, batch("orders", 1, 5))
	closeSink(t, s)
	anew := batch("orders", 1, 2)
	for i := range anew {
		anew[i].ID = events.NewID("orders", 0, "another key", anew[i].Seq, nil)
	}
	s = open(t, path)
	deliver(t, s, anew)
	wantContent(t, path, lines(batch("orders", 1, 5), anew))
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
	if n, err := s.Deliver(t.Context(), batch("orders", 2, 3)); n != 0 || !errors.Is(err, failure) {
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
		if n, err := s.Deliver(t.Context(), batch("orders", 2, 2)); n != 0 || !errors.Is(err, file.ErrForeign) {
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
		"no path":           "",
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
	path := tempPath(t)
	s := open(t, path)
	large := batch("orders", 1, 12)
	for i := range large {
		large[i].Subject = strings.Repeat("x", 300<<10)
	}
	n, err := s.Deliver(t.Context(), large)
	if n == 0 || n > 4 || err != nil {
		t.Fatalf("got %d, %v, want a part of about 1 MiB", n, err)
	}
	deliver(t, s, large[n:])
	wantSameContent(t, path, lines(large))
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
