//go:build failpoints

package failpoint_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
)

// child makes a process of these tests pass the point lease.acquired three
// times, and say on stdout how far it came.
const child = "FAILPOINT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	if err := failpoint.Check(); err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(78)
	}
	fmt.Fprintln(os.Stdout, "offset", failpoint.ClockOffset())
	for n := range 3 {
		failpoint.Hit("lease.acquired")
		fmt.Fprintln(os.Stdout, "passed", n+1)
	}
	os.Exit(0)
}

type process struct {
	cmd            *exec.Cmd
	stdout, stderr strings.Builder
}

func start(t *testing.T, rules string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = []string{child + "=1", failpoint.Variable + "=" + rules, failpoint.ClockVariable + "=-90m"}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

func (p *process) status(t *testing.T) syscall.WaitStatus {
	t.Helper()
	_ = p.cmd.Wait() // How it ended is what the caller looks at.
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		t.Fatal("no status of a process")
	}
	return status
}

func TestTaggedKill(t *testing.T) {
	t.Parallel()
	p := start(t, "lease.acquired=kill@2")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if s := p.status(t); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want SIGKILL", s)
	}
	if got, want := p.stdout.String(), "offset -1h30m0s\npassed 1\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if got, want := p.stderr.String(), "failpoint name=lease.acquired hit=2 action=kill\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestTaggedExitAndPanic(t *testing.T) {
	t.Parallel()
	for action, code := range map[string]int{"exit": 1, "panic": 2} {
		p := start(t, "lease.acquired="+action)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if s := p.status(t); s.ExitStatus() != code {
			t.Errorf("%s: ended with %d, want %d", action, s.ExitStatus(), code)
		}
	}
}

func TestTaggedSleepEachTime(t *testing.T) {
	t.Parallel()
	p := start(t, "lease.acquired=sleep:20ms-40ms@*")
	began := time.Now()
	if err := p.cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 60*time.Millisecond {
		t.Errorf("three sleeps of 20 ms took %s", took)
	}
	if n := strings.Count(p.stderr.String(), "action=sleep"); n != 3 {
		t.Errorf("slept %d times, want 3", n)
	}
}

// TestTaggedStop sees the process stop before the point is passed, and go on.
func TestTaggedStop(t *testing.T) {
	t.Parallel()
	p := start(t, "lease.acquired=stop@1")
	p.cmd.Stdout = nil
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process is not stopped: %v %v", status, err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "offset") {
		t.Fatalf("said %q: %v", line, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(rest), "passed 1\npassed 2\npassed 3\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if s := p.status(t); s.ExitStatus() != 0 {
		t.Errorf("ended with %v", s)
	}
}

func TestTaggedBadEnvironment(t *testing.T) {
	t.Parallel()
	p := start(t, "lease.aquired=kill")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if s := p.status(t); s.ExitStatus() != 78 || !strings.Contains(p.stdout.String(), `no point "lease.aquired"`) {
		t.Errorf("ended with %v and %q", s, p.stdout.String())
	}
}
