package file_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/file"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// The test binary is also the process that is killed, or that runs into a
// limit: these variables say which, and where it writes to.
const (
	roleVariable = "OBSERVERD_TEST_ROLE"
	pathVariable = "OBSERVERD_TEST_PATH"
)

func TestMain(m *testing.M) {
	path := os.Getenv(pathVariable)
	switch os.Getenv(roleVariable) {
	case "writer":
		fail(writeUntilKilled(path))
	case "limited":
		fail(writeUnderLimits(path))
	default:
		waittest.VerifyNoLeaks(m)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func process(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	return cmd
}

// mostWritten is the last sequence of a writer that nobody has killed yet. How far
// it gets beyond what is read of it is the machine's to say; so far at most.
const mostWritten = 5000

// writeUntilKilled delivers batch after batch and prints what it would acknowledge.
func writeUntilKilled(path string) error {
	s, err := file.Open(context.Background(), file.Options{Path: path})
	if err != nil {
		return err
	}
	for seq := int64(1); seq < mostWritten; seq += 10 {
		n, err := sinktest.Deliver(context.Background(), s, batch("orders", seq, seq+9))
		if n != 10 || err != nil {
			return fmt.Errorf("stored %d: %w", n, err)
		}
		if _, err := fmt.Fprintln(os.Stdout, seq+9); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin) // The parent never closes it.
	return err
}

// TestKilled kills a writing process, and goes on where it was last heard of,
// and also a batch before that, as if an acknowledgement was lost with it.
func TestKilled(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(round))
		acknowledged := killAfter(t, path, 1+round*7)
		s := open(t, path)
		// The writer went on until the signal arrived.
		const end = mostWritten + 10
		deliver(t, s, batch("orders", max(1, acknowledged-9), end))
		closeSink(t, s)
		wantContent(t, path, lines(batch("orders", 1, end)))
	}
}

// killAfter kills a writer after that many batches, and returns the last
// sequence that it acknowledged. Its end is waited for: the lock goes with it.
func killAfter(t *testing.T, path string, batches int) (acknowledged int64) {
	t.Helper()
	cmd := process(t, "writer", path)
	_, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	in := bufio.NewScanner(out)
	for range batches {
		if !in.Scan() {
			break
		}
		acknowledged, err = strconv.ParseInt(in.Text(), 10, 64)
		must(t, err)
	}
	must(t, cmd.Process.Kill())
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // It was killed.
	if acknowledged != int64(batches)*10 {
		t.Fatalf("the writer ended by itself at %d", acknowledged)
	}
	return acknowledged
}

// TestFullDisk has the kernel refuse to let the file grow beyond a limit, at
// every byte of two lines, in a process whose limit can be set.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	out, err := process(t, "limited", t.TempDir()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func writeUnderLimits(dir string) error {
	var unlimited unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &unlimited); err != nil {
		return err
	}
	begin, end := len(lines(batch("orders", 1, 2))), len(lines(batch("orders", 1, 4)))
	for limit := begin; limit < end; limit++ {
		path := filepath.Join(dir, fmt.Sprint(limit))
		if err := fillUpTo(path, limit, unlimited); err != nil {
			return fmt.Errorf("limit of %d bytes: %w", limit, err)
		}
	}
	return nil
}

// fillUpTo delivers one event, then four where the limit lets in fewer, and
// the rest after the limit was lifted.
func fillUpTo(path string, limit int, unlimited unix.Rlimit) error {
	all := batch("orders", 1, 4)
	s, err := file.Open(context.Background(), file.Options{Path: path})
	if err != nil {
		return err
	}
	defer s.Close()
	if n, err := sinktest.Deliver(context.Background(), s, all[:1]); n != 1 {
		return fmt.Errorf("first event: %w", err)
	}
	limited := unlimited
	limited.Cur = uint64(limit)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		return err
	}
	stored, err := sinktest.Deliver(context.Background(), s, all)
	if restored := unix.Setrlimit(unix.RLIMIT_FSIZE, &unlimited); restored != nil {
		return restored
	}
	text := lines(all)
	if want := strings.Count(text[:limit], "\n"); stored != want || !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("stored %d events, want %d, and EFBIG: %w", stored, want, err)
	}
	if err := holds(path, lines(all[:stored])); err != nil {
		return err
	}
	if n, err := sinktest.Deliver(context.Background(), s, all[stored:]); n != 4-stored {
		return fmt.Errorf("stored %d of the rest: %w", n, err)
	}
	return holds(path, text)
}

func holds(path, want string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("the file holds %q, want %q", got, want)
	}
	return err
}

var _ sink.Sink = (*file.Sink)(nil)
