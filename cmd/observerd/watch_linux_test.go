package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/jsontext/terminal"
)

// TestAWatchEndsWell interrupts watches of real processes, on a terminal and on a pipe.
func TestAWatchEndsWell(t *testing.T) {
	t.Parallel()
	config := watchedPlace(t)
	for _, args := range [][]string{{"status"}, {"locks", "ls"}} {
		var piped bytes.Buffer
		watchTwice(t, append(args, "--watch", "--config", config), func(cmd *exec.Cmd) { cmd.Stdout = &piped })
		if text := piped.String(); strings.Contains(text, "\x1b") || strings.Count(text, "LOCK") < 2 {
			t.Errorf("%q on a pipe: %q", args, text)
		}
		window, terminal := openTerminal(t)
		resize(t, terminal, 12)
		drawn := make(chan string, 1)
		go func() {
			var all []byte
			for buf := make([]byte, 4096); ; {
				n, err := window.Read(buf)
				if all = append(all, buf[:n]...); err != nil {
					drawn <- string(all)
					return
				}
			}
		}()
		watchTwice(t, append(args, "--watch", "--config", config), func(cmd *exec.Cmd) { cmd.Stdout = terminal })
		must(t, terminal.Close())
		if text := <-drawn; strings.Count(text, toTop) < 2 || !strings.HasSuffix(text, wrap) {
			t.Errorf("%q on a terminal: %q", args, text)
		} else if args[0] == "status" && (!strings.Contains(text, "… and more: ") || strings.Contains(text, "more lines")) {
			t.Errorf("%q does not fit the terminal: %q", args, text)
		}
	}
}

func resize(t *testing.T, terminal *os.File, rows uint16) {
	t.Helper()
	raw, err := terminal.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 200})
	}))
	must(t, err)
}

// TestAWatchGoesOn takes the database away from a watch, and gives it back.
func TestAWatchGoesOn(t *testing.T) {
	t.Parallel()
	c := &cli{stdout: &terminal.Text{Writer: new(bytes.Buffer)}, stderr: &terminal.Text{Writer: new(bytes.Buffer)}}
	down, calls := errors.New("the database is down"), 0
	ctx, cancel := context.WithCancelCause(t.Context())
	err := c.watch(ctx, time.Minute, true, func(context.Context, io.Writer) error {
		switch calls++; calls {
		case 2:
			return down
		case 3:
			cancel(signalError{syscall.SIGINT})
		}
		return nil
	})
	if said := c.stderr.(*terminal.Text).Writer.(*bytes.Buffer).String(); err != nil || calls != 3 || said != "observerd: the database is down\n" {
		t.Errorf("%d calls, %v, %q", calls, err, said)
	}
	if err := c.watch(t.Context(), time.Minute, true, func(context.Context, io.Writer) error { return down }); !errors.Is(err, down) {
		t.Errorf("a watch that cannot begin: %v", err)
	}
}

// TestColors has a status with an observer that is paused, with and without colors.
func TestColors(t *testing.T) {
	t.Parallel()
	config := watchedPlace(t)
	printed(t, "observers", "pause", "warehouse-orders", "--for", "1h", "--config", config)
	for name, tc := range map[string]struct {
		environ []string
		painted bool
	}{"colors": {nil, true}, "NO_COLOR": {[]string{"NO_COLOR=1"}, false}, "an empty NO_COLOR": {[]string{"NO_COLOR="}, true}} {
		shown := onTerminalIn(t, tc.environ, []string{"status", "--config", config})
		if painted := strings.Contains(shown, "\x1b[33mpaused for "); painted != tc.painted || !strings.Contains(shown, "paused for ") {
			t.Errorf("%s: %q", name, shown)
		}
	}
	if text, _ := printed(t, "status", "--config", config); strings.Contains(text, "\x1b") {
		t.Errorf("colors that are no terminal's: %q", text)
	}
}

// watchedPlace is the configuration of a place that has a coordination database.
func watchedPlace(t *testing.T) (config string) {
	t.Helper()
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/config.yaml")
	must(t, err)
	config = filepath.Join(folder, "config.yaml")
	must(t, os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "sqlite:var/", "sqlite:"+folder+"/")), 0o600))
	printed(t, "migrate", "up", "--config", config)
	return config
}

// watchTwice runs a command until it must have printed twice, and interrupts it.
func watchTwice(t *testing.T, args []string, prepare func(*exec.Cmd)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = append([]string{"observerd"}, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	prepare(cmd)
	must(t, cmd.Start())
	time.Sleep(2*watchEvery + time.Second)
	must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%q ends with %v: %s", args, err, &stderr)
	}
}

// TestFrame draws texts that fit, and one that does not.
func TestFrame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text   string
		height int
		want   string
	}{
		"it fits":        {"a\nb\n", 3, "a\x1b[K\nb"},
		"it is too long": {"a\nb\nc\nd\n", 4, "a\x1b[K\nb\x1b[K\n… and 2 more lines"},
		"of no height":   {"a\nb\n", 0, "a\x1b[K\nb"},
	} {
		if got := frame(tc.text, tc.height); got != noWrap+toTop+tc.want+clearLine+"\n"+clearRest+wrap {
			t.Errorf("%s: %q", name, got)
		}
	}
}
