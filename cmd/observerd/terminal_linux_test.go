package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAClosedTerminalEndsTheNode covers the SIGHUP that asks for no reload: that
// of a terminal whose window was closed.
func TestAClosedTerminalEndsTheNode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	window, terminal := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = []string{"observerd", "run", "--with-sample"}
	cmd.Dir, cmd.Stderr = folder, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(window); lines.Scan(); {
			if strings.Contains(lines.Text(), `"Completed polling"`) {
				ready <- true
				return
			}
		}
		ready <- false
	}()
	ended := make(chan error, 1)
	select {
	case ok := <-ready:
		if !ok {
			t.Error("the node does not get ready")
		}
	case <-time.After(time.Minute):
		t.Error("the node is not ready after a minute")
		_ = cmd.Process.Kill()
	}
	if err := window.Close(); err != nil { // The kernel sends SIGHUP.
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the node ends with %v", err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Errorf("the node lives on: %v", <-ended)
	}
}

// TestJSONOnATerminal runs the commands that print JSON, on a terminal: it has
// nothing to obey there, and the JSON says the same.
func TestJSONOnATerminal(t *testing.T) {
	t.Parallel()
	config := hostilePlace(t)
	printed(t, "poll", "good", "--once", "--config", config)
	for _, args := range [][]string{
		{"events", "tail", "good", "-o", "json"},
		{"poll", "good", "--dry-run", "-o", "json"},
		{"validate", "--sample", "2", "-o", "json"},
		{"status", "-o", "json"},
		{"doctor", "--watch", "0", "-o", "json"},
	} {
		text := onTerminal(t, append(args, "--config", config))
		if obeyedIn(text) || !strings.Contains(text, `\u009b1m\u202e`) || !json.Valid([]byte(text)) {
			t.Errorf("%q: %q", args, text)
		}
	}
}

// withScreen replaces the sinks of a configuration by one of stdout, in that format,
// and has the log in JSON.
func withScreen(t *testing.T, config, format string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "sinks:")
	text = []byte(before + "sinks: [{id: s, type: stdout, format: " + format + "}]\nhttp: {listen: \"\"}\nlog: {level: info, format: json}\n")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEventsForPeople has events of a node, and those of the log, on a terminal.
func TestEventsForPeople(t *testing.T) {
	t.Parallel()
	config := hostilePlace(t)
	withScreen(t, config, "auto")
	// A line has a time, the observer, its sequence, type, change, subject and data.
	line := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  good +\d+ +\S+ +new( snapshot)? +\S.*\\u009b1m\\u202e.* \{".*\\u009b1m\\u202e.*$`)
	for name, shown := range map[string]string{
		"run":  onTerminal(t, []string{"run", "--config", config}, "Z  good  "),
		"tail": onTerminal(t, []string{"events", "tail", "good", "--config", config}),
	} {
		if obeyedIn(shown) || !line.MatchString(shown) || strings.Contains(shown, "specversion") {
			t.Errorf("%s: %q", name, shown)
		}
	}
}

// TestANodeOnATerminal has a node print events, and log, in JSON on a terminal.
func TestANodeOnATerminal(t *testing.T) {
	t.Parallel()
	config := hostilePlace(t)
	withScreen(t, config, "json")
	shown := onTerminal(t, []string{"run", "--config", config}, `"msg":"Error during polling"`, `"specversion":`)
	if obeyedIn(shown) || strings.Count(shown, `\u009b1m\u202e`) < 2 {
		t.Errorf("%q", shown)
	}
	for line := range strings.Lines(shown) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line is no JSON: %q", line)
		}
	}
}

// onTerminal is what a command shows on a terminal until it ends. It is made to
// when all of the texts were shown, if there are any.
func onTerminal(t *testing.T, args []string, until ...string) string {
	t.Helper()
	return onTerminalIn(t, nil, args, until...)
}

// onTerminalIn is onTerminal in an environment.
func onTerminalIn(t *testing.T, environ, args []string, until ...string) string {
	t.Helper()
	window, terminal := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shown := make(chan string, 1)
	go func() {
		var all []byte
		for buf := make([]byte, 4096); ; {
			n, err := window.Read(buf)
			all = append(all, buf[:n]...)
			if len(until) > 0 && !slices.ContainsFunc(until, func(text string) bool { return !bytes.Contains(all, []byte(text)) }) {
				cancel()
			}
			if err != nil { // It says so when the last end of the terminal is closed.
				shown <- strings.ReplaceAll(string(all), "\r\n", "\n")
				return
			}
		}
	}()
	run(ctx, args, environ, strings.NewReader(""), terminal, terminal)
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	return <-shown
}

// openTerminal makes a terminal: what a program sees of it, and its window.
func openTerminal(t *testing.T) (window, terminal *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = window.Close() })
	raw, err := window.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var unlocked error
	err = raw.Control(func(fd uintptr) {
		unlocked = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err != nil || unlocked != nil {
		t.Fatal(err, unlocked)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return window, terminal
}
