package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

// observerd is this binary as observerd in a folder with a configuration of the database
// alone.
func observerd(t *testing.T, folder, url string, args ...string) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte("database: {url: '"+url+"'}\nhttp: {listen: ''}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe")
	cmd.Args, cmd.Dir = append([]string{"observerd"}, args...), folder
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}

// start starts it, and kills it at the end of the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		_, err := os.Stat(path)
		return err
	})
}

// A lock of a process that was killed ends with its TTL and not before, though a node runs that
// sees the death.
func TestLockOfADeadProcessEndsWithItsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 15 * time.Second // The shortest on SQLite.
	for name, url := range map[string]string{"sqlite": lockdbtest.SQLite(t), "postgres": lockdbtest.Postgres(t, "")} {
		for _, mode := range []string{"exclusive", "shared"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				start(t, observerd(t, folder, url, "run"))
				began := time.Now()
				holder := observerd(t, folder, url, "exec", "--lock", "lock:"+mode+":schema:reading:"+mode, "--ttl", ttl.String(),
					"--", "sh", "-c", "echo >held; exec sleep 3600")
				start(t, holder)
				waitForFile(t, filepath.Join(folder, "held"))
				if err := holder.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				contender := observerd(t, folder, url, "exec", "--lock", "lock:exclusive:schema:writing:"+mode, "--wait", "2m", "--", "true")
				if output, err := contender.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, output)
				}
				if held := time.Since(began); held < ttl {
					t.Errorf("the lock was free after %s", held)
				}
			})
		}
	}
}

// A holder that is cut off trusts its lease until shortly before the TTL is over: its command
// has ended before another begins, in whatever direction it was cut, and though the server
// has lost its sessions and a node runs that judges the dead.
func TestCommandOfAHolderThatIsCutOffEndsFirst(t *testing.T) {
	t.Parallel()
	url := lockdbtest.Postgres(t, "")
	start(t, observerd(t, t.TempDir(), url, "run"))
	failover := func(p *netfault.Proxy) {
		p.Refuse(true)
		p.Reset()
	}
	for name, cut := range map[string]struct {
		mode, ttl string
		do        func(p *netfault.Proxy)
	}{
		// The server sees the end of a session when its client has given up waiting for the
		// answer to a cancellation, which takes 15 s.
		"answers":         {"exclusive", "40s", func(p *netfault.Proxy) { p.SetImpairment(netfault.Impairment{Down: netfault.Lost}) }},
		"requests":        {"exclusive", "12s", func(p *netfault.Proxy) { p.SetImpairment(netfault.Impairment{Up: netfault.Lost}) }},
		"both":            {"exclusive", "12s", func(p *netfault.Proxy) { p.SetImpairment(netfault.BlackHole()) }},
		"sessions":        {"exclusive", "12s", failover},
		"sessions-shared": {"shared", "12s", failover},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxied, proxy := netfault.StartBefore(t, url)
			folder := t.TempDir()
			holder := observerd(t, folder, proxied, "exec", "--lock", "lock:"+cut.mode+":schema:reading:"+name, "--ttl", cut.ttl,
				"--", "sh", "-c", "trap 'echo >ended; exit 0' TERM; echo >held; while :; do sleep 0.1; done")
			start(t, holder)
			waitForFile(t, filepath.Join(folder, "held"))
			cut.do(proxy)
			contender := observerd(t, folder, url, "exec", "--lock", "lock:exclusive:schema:writing:"+name, "--wait", "2m",
				"--", "sh", "-c", "test -e ended || exit 5")
			if output, err := contender.CombinedOutput(); err != nil {
				t.Errorf("%v (5: the holder's command still runs): %s", err, output)
			}
			endsWith(t, holder, exitLost)
		})
	}
}

// A release that was not answered says nothing of who holds the lock.
func TestReleaseThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]netfault.Impairment{
		"answers": {Down: netfault.Lost}, "both": netfault.BlackHole(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxied, proxy := netfault.StartBefore(t, lockdbtest.Postgres(t, ""))
			folder := t.TempDir()
			holder := observerd(t, folder, proxied, "exec", "--lock", "lock:exclusive:schema:reading:a", "--ttl", "5m",
				"--", "sh", "-c", "echo >held; while [ ! -e cut ]; do sleep 0.1; done")
			start(t, holder)
			waitForFile(t, filepath.Join(folder, "held"))
			proxy.SetImpairment(cut)
			if err := os.WriteFile(filepath.Join(folder, "cut"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			endsWith(t, holder, exitLost)
		})
	}
}

// endsWith waits for the end of the process.
func endsWith(t *testing.T, cmd *exec.Cmd, want int) {
	t.Helper()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
}

// A signal that comes before the command runs ends the wait, and gives back the place in line
// and what is held by then.
func TestSignalBeforeTheCommandRuns(t *testing.T) {
	t.Parallel()
	url, lock := lockdbtest.SQLite(t), "lock:exclusive:audit:processing:a"
	folder := t.TempDir()
	start(t, observerd(t, folder, url, "exec", "--lock", lock, "--ttl", "1h", "--", "sh", "-c", "echo >held; exec sleep 3600"))
	waitForFile(t, filepath.Join(folder, "held"))
	db, err := sql.Open("sqlite", strings.Replace(url, "sqlite:", "file:", 1)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	inLine := func(want int) {
		t.Helper()
		waittest.Eventually(t, time.Minute, func() error {
			var n int
			err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM obs_wait`).Scan(&n)
			if err == nil && n != want {
				err = fmt.Errorf("%d wait, want %d", n, want)
			}
			return err
		})
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		cmd := observerd(t, folder, url, "exec", "--lock", lock, "--wait", "1h", "--", "sh", "-c", "echo >ran")
		start(t, cmd)
		inLine(1)
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) {
			t.Errorf("%s: %v, want exit code %d", s, err, 128+int(s))
		}
		inLine(0)
	}
	if _, err := os.Stat(filepath.Join(folder, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

// A command that is stopped, as by a read from the terminal in the background, can be ended.
func TestStoppedCommandIsEnded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd := observerd(t, folder, lockdbtest.SQLite(t), "exec", "--lock", "a", "--", "sh", "-c", "echo $$ >part; mv part held; kill -STOP $$; sleep 3600")
	start(t, cmd)
	waitForFile(t, filepath.Join(folder, "held"))
	pid, err := os.ReadFile(filepath.Join(folder, "held"))
	if err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, time.Minute, func() error {
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err == nil && !strings.Contains(string(stat), ") T ") {
			err = fmt.Errorf("it has not stopped: %s", stat)
		}
		return err
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("%v, want exit code 143", err)
	}
}

// Ctrl-C at a terminal reaches the command from the terminal, and once.
func TestCommandAtATerminal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	window, terminal := openTerminal(t)
	cmd := observerd(t, folder, lockdbtest.SQLite(t), "exec", "--lock", "lock:exclusive:audit:processing:a", "--",
		"sh", "-c", `trap 'echo INT >>signals' INT; echo >held; while [ $(wc -l <signals 2>/dev/null || echo 0) = 0 ]; do sleep 0.1; done; sleep 0.5; exit 5`)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, &complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	start(t, cmd)
	waitForFile(t, filepath.Join(folder, "held"))
	if _, err := window.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("%v, want exit code 5: %s", err, &complaints)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "signals")); err != nil || string(text) != "INT\n" {
		t.Errorf("the command got %q, %v", text, err)
	}
}
