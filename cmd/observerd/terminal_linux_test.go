package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			if strings.Contains(lines.Text(), `"Ready"`) {
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
