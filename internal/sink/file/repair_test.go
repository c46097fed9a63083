package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink/file"
)

// TestTornLine opens a file that was cut off at each byte, as by a crash, and
// delivers again what was never acknowledged.
func TestTornLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	three := batch("orders", 1, 3)
	all := lines(three)
	for cut := range len(all) + 1 {
		path := filepath.Join(dir, fmt.Sprint(cut))
		write(t, path, all[:cut])
		s := open(t, path)
		deliver(t, s, three)
		closeSink(t, s)
		wantContent(t, path, all)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	two, third := batch("orders", 1, 2), batch("orders", 3, 3)
	line := lines(third)
	body := strings.TrimSuffix(line, "\n")
	for name, tt := range map[string]struct{ end, kept, logged string }{
		"nothing wrong":             {"", "", ""},
		"torn":                      {line[:50], "", "bytes=50"},
		"the line break is missing": {body, line, "finished"},
		"zeros":                     {"\x00\x00\x00", "", "bytes=3"},
		"a line of zeros":           {"\x00\x00\n", "", "bytes=3"},
		"zeros within":              {line[:60] + "\x00\x00\x00\x00" + line[64:], "", "cut off"},
		"two broken lines":          {line[:60] + "\x00" + line[61:] + line[:60] + "\n", "", "cut off"},
		"zeros and a whole line":    {"\x00\x00\n" + line, "\x00\x00\n" + line, "lines=1"},
		"a note before an event":    {"a note\n" + line, "a note\n" + line, ""},
		"torn behind that":          {"a note\n" + line + line[:9], "a note\n" + line, "bytes=9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			write(t, path, lines(two)+tt.end)
			s, log := openLogged(t, path)
			wantContent(t, path, lines(two)+tt.kept)
			if !strings.Contains(log.String(), tt.logged) || (tt.logged == "" && log.Len() > 0) {
				t.Errorf("logged %q, want %q", log.String(), tt.logged)
			}
			deliver(t, s, append(two, third...))
			want := lines(two) + tt.kept
			if !strings.Contains(tt.kept, line) {
				want += line
			}
			wantContent(t, path, want)
		})
	}
}

// cloudEvent begins like one of ours.
const cloudEvent = `{"specversion":"1.0","id":"595887fa-94ce-8de2-bd60-81a9c3af4f53","source":"/shop"}` + "\n"

// TestForeignFileIsLeftAlone is a path that was mistyped, or a file of ours at whose
// end somebody else has written. Not even a piece of an event is cut off.
func TestForeignFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	ours := lines(batch("orders", 1, 2))
	for _, content := range []string{
		"root:x:0:0", "a: b\nc", "{\"specversion\":\"0.3\"", "\n\n[1,2", cloudEvent[:len(cloudEvent)-1],
		"root:x:0:0\n", "a: b\nc: d\n", "{}\n", "[1,2]\n", "{\n", "\n", cloudEvent, "a note\n" + ours[:9],
		ours + "a note\n", ours + "\n", ours + cloudEvent, ours + "a note\n" + ours[:30], ours + "a note\n\x00\x00",
	} {
		path := tempPath(t)
		write(t, path, content)
		_, err := file.Open(t.Context(), file.Options{Path: path})
		if !errors.Is(err, file.ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v, want ErrForeign with the path", content, err)
		}
		wantContent(t, path, content)
	}
}

// FuzzOpen opens a file of any content. Whole lines survive, events among them
// are not written again, and what is delivered then is a line of its own.
func FuzzOpen(f *testing.F) {
	two := lines(batch("orders", 1, 2))
	f.Add([]byte(nil))
	f.Add([]byte(two))
	f.Add([]byte(two[:len(two)-1]))
	f.Add([]byte(two[:len(two)-40]))
	f.Add([]byte("note\n" + two[:30] + "\n" + two + "\x00\x00\n"))
	f.Add([]byte("note"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(dir, fmt.Sprint(os.Getpid()))
		write(t, path, string(content))
		s, err := file.Open(t.Context(), file.Options{Path: path})
		if errors.Is(err, file.ErrForeign) {
			wantContent(t, path, string(content))
			return
		}
		must(t, err)
		defer s.Close()
		deliver(t, s, batch("orders", 1, 3))
		got, err := os.ReadFile(path)
		must(t, err)
		checkRepaired(t, string(content), string(got))
	})
}

func checkRepaired(t *testing.T, before, after string) {
	t.Helper()
	if !strings.HasSuffix(after, "\n") {
		t.Fatalf("%q ends without a line break", after)
	}
	now := map[string]int{}
	for line := range strings.Lines(after) {
		now[line]++
	}
	was := map[string]int{}
	for line := range strings.Lines(before) {
		was[line]++
		if _, err := events.Decode([]byte(line)); err == nil && strings.HasSuffix(line, "\n") && now[line] == 0 {
			t.Fatalf("the event %q was lost", line)
		}
	}
	for _, e := range batch("orders", 1, 3) {
		line := lines([]events.Event{e})
		if now[line] != max(1, was[line]) && was[strings.TrimSuffix(line, "\n")] == 0 && !strings.Contains(before, e.ID.String()) {
			t.Fatalf("event %d is there %d times, was %d times", e.Seq, now[line], was[line])
		}
	}
}
