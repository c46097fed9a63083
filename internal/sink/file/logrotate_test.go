package file_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/test/kit/servertest"
)

const repository = "../../.."

var errNoLogrotate = errors.New("no logrotate found")

// rotator runs the real logrotate on one file, once at a time.
type rotator struct {
	ctx                   context.Context
	path, folder, program string
	environ               []string
	times                 int
}

// newRotator has the stanza of the documentation with one option replaced, for a
// file of the user of these tests. It stands in a configuration like Debian's.
func newRotator(t *testing.T, option, other string) *rotator {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs/operations.md"))
	must(t, err)
	found := regexp.MustCompile("(?s)```\n(# /etc/logrotate.d/.*?)```").FindAllSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("docs/operations.md has %d stanzas of logrotate, want one", len(found))
	}
	r := &rotator{ctx: t.Context(), path: tempPath(t), folder: t.TempDir(), program: logrotate(t)}
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(r.program), "../lib/*-linux-gnu*"))
	must(t, err)
	if len(libraries) > 0 { // An unpacked program has them beside it.
		r.environ = []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	}
	stanza := string(found[0][1])
	for documented, own := range map[string]string{
		"    " + option + "\n":                "    " + other + "\n",
		"\n/var/lib/observerd/events.jsonl {": "\n" + r.path + " {",
		"    su observerd observerd\n":        su(),
	} {
		if strings.Count(stanza, documented) != 1 {
			t.Fatalf("the stanza of docs/operations.md lacks %q:\n%s", documented, stanza)
		}
		stanza = strings.Replace(stanza, documented, own, 1)
	}
	write(t, filepath.Join(r.folder, "conf"), "weekly\nrotate 4\ncreate\n"+stanza)
	return r
}

// su names the user of these tests; logrotate refuses one without a name.
func su() string {
	uid, gid := fmt.Sprint(os.Geteuid()), fmt.Sprint(os.Getegid())
	_, userErr := user.LookupId(uid)
	_, groupErr := user.LookupGroupId(gid)
	if userErr != nil || groupErr != nil {
		return ""
	}
	return "    su " + uid + " " + gid + "\n"
}

// logrotate returns the program. Its package for Debian would bring cron and a
// timer that rotates the logs of this machine.
func logrotate(t *testing.T) string {
	t.Helper()
	unpacked, err := filepath.Abs(filepath.Join(repository, ".cache", "logrotate"))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), servertest.InstallTimeout)
	defer cancel()
	folder, err := servertest.Product{
		Name: "logrotate", Unpack: unpacked, Packages: map[string]string{
			"apt-get": "logrotate libpopt0", "dnf": "logrotate", "yum": "logrotate", "apk": "logrotate", "zypper": "logrotate",
			"pacman": "logrotate", "brew": "logrotate",
		},
		Find: func(context.Context) (string, error) {
			folders := []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin", filepath.Join(unpacked, "usr/sbin")}
			for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), folders...) {
				if _, err := exec.LookPath(filepath.Join(folder, "logrotate")); err == nil {
					return folder, nil
				}
			}
			return "", errNoLogrotate
		},
		Missing: errNoLogrotate, Instead: "put logrotate into PATH",
	}.Programs(ctx)
	must(t, err)
	return filepath.Join(folder, "logrotate")
}

// grewMeanwhile is what logrotate and gzip say of a file that a batch reached while
// gzip read it. They keep the compressed file all the same.
var grewMeanwhile = regexp.MustCompile(
	`error: Compressing program wrote following message to stderr when compressing log .*:\ngzip: stdin: file size changed while zipping\n`)

// rotate returns when the file was rotated, and compressed if it is to be.
func (r *rotator) rotate() error {
	cmd := exec.CommandContext(r.ctx, r.program, "--force", "--state", filepath.Join(r.folder, "state"), filepath.Join(r.folder, "conf"))
	cmd.Env = append(os.Environ(), r.environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("logrotate: %w\n%s", err, out)
	}
	if len(grewMeanwhile.ReplaceAll(out, nil)) > 0 {
		return fmt.Errorf("logrotate complains:\n%s", out)
	}
	r.times++
	if rotated, err := filepath.Glob(r.path + ".*"); err != nil || len(rotated) != r.times {
		return fmt.Errorf("rotated files after rotation %d: %v, %w", r.times, rotated, err)
	}
	return nil
}

// TestLogrotate rotates the file of a relay that is never idle: between its batches,
// in the middle of them, at any time, and after a crash.
func TestLogrotate(t *testing.T) {
	t.Parallel()
	t.Run("as documented", func(t *testing.T) {
		t.Parallel()
		r := newRotator(t, "delaycompress", "delaycompress")
		last := r.story(t)
		// Only the crash has torn a line.
		if torn := r.check(t, last); torn != 1 {
			t.Errorf("%d files end with a piece of a line, want that of the crash alone", torn)
		}
	})
	t.Run("without delaycompress", func(t *testing.T) {
		t.Parallel()
		r := newRotator(t, "delaycompress", "nodelaycompress")
		last := r.story(t)
		r.check(t, last) // gzip may have met a batch that was half written.
	})
}

// TestCopytruncateHalts is the same with the option that must not be there.
func TestCopytruncateHalts(t *testing.T) {
	t.Parallel()
	r := newRotator(t, "nocreate", "copytruncate")
	s := open(t, r.path)
	deliver(t, s, batch("orders", 1, 50))
	must(t, r.rotate())
	wantHalted(t, s, r.path, batch("orders", 51, 51))
	must(t, os.Rename(r.path, r.path+".truncated"))
	deliver(t, s, batch("orders", 51, 51))
	wantContent(t, r.path, lines(batch("orders", 51, 51)))
}

// story delivers events through many rotations, and returns the last sequence.
func (r *rotator) story(t *testing.T) (last int64) {
	t.Helper()
	next := func() []events.Event { // more than a page
		last += 50
		return batch("orders", last-49, last)
	}
	s := open(t, r.path)
	for _, name := range slices.Sorted(maps.Keys(moments)) {
		deliver(t, s, next()) // An empty file is not rotated.
		must(t, moments[name](s, r.rotate))
		deliver(t, s, next())
	}
	r.atAnyTime(t, func() error {
		b := next()
		n, err := sinktest.Deliver(t.Context(), s, b)
		if err == nil && n < len(b) {
			err = fmt.Errorf("stored %d of %d", n, len(b))
		}
		return err
	})
	deliver(t, s, next()) // The last rotation may have come after the last batch.
	closeSink(t, s)
	unacknowledged := next()
	whole, err := os.ReadFile(r.path)
	must(t, err)
	write(t, r.path, string(whole)+lines(unacknowledged)[:1000])
	must(t, r.rotate())
	s = open(t, r.path)
	deliver(t, s, unacknowledged)
	deliver(t, s, next())
	return last
}

// atAnyTime rotates while deliver is called again and again.
func (r *rotator) atAnyTime(t *testing.T, deliver func() error) {
	t.Helper()
	delivered, stop, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(delivered)
		for {
			if err := deliver(); err != nil {
				failed <- err
				return
			}
			select {
			case <-stop:
				failed <- nil
				return
			case delivered <- struct{}{}:
			default: // Nobody waits for it.
			}
		}
	}()
	var err error
	for range 5 {
		// The first may have begun before the last rotation.
		<-delivered
		<-delivered
		if err = r.rotate(); err != nil {
			break
		}
	}
	close(stop)
	must(t, errors.Join(err, <-failed))
}

// check reads all files, oldest first: they hold each event up to the last, in
// order, each of them once in a file. It returns how many of the rotated files
// end with a piece of a line.
func (r *rotator) check(t *testing.T, last int64) (torn int) {
	t.Helper()
	var reached int64 // the last event of the files so far
	for age := r.times; age >= 0; age-- {
		text := r.read(t, age)
		var seq int64
		for line := range strings.Lines(text) {
			e, err := events.Decode([]byte(line))
			switch {
			case err != nil && age > 0 && strings.HasSuffix(text, line) && !strings.HasSuffix(line, "\n"):
				torn++
				continue
			case err != nil || line != lines(batch("orders", e.Seq, e.Seq)):
				t.Fatalf("file %d holds the line %q: %v", age, line, err)
			case seq == 0 && e.Seq > reached+1, seq > 0 && e.Seq != seq+1:
				t.Fatalf("in file %d, event %d follows on %d of it and %d of those before", age, e.Seq, seq, reached)
			}
			seq = e.Seq
		}
		reached = max(reached, seq)
	}
	if reached != last {
		t.Errorf("the last event is %d, want %d", reached, last)
	}
	return torn
}

// read returns the text of a file that was rotated so many times.
func (r *rotator) read(t *testing.T, age int) string {
	t.Helper()
	if age == 0 {
		text, err := os.ReadFile(r.path)
		must(t, err)
		return string(text)
	}
	plain := fmt.Sprint(r.path, ".", age)
	if text, err := os.ReadFile(plain); err == nil {
		return string(text)
	}
	packed, err := os.Open(plain + ".gz")
	must(t, err)
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	must(t, err)
	text, err := io.ReadAll(in)
	must(t, err)
	return string(text)
}
