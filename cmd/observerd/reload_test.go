package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// told makes the metrics of a node that is this process, whose reload of that
// number was the last to end, and ended so.
func told(number, code int) string { return toldBy(os.Getpid(), number, code) }

func toldBy(pid, number, code int) string {
	var b strings.Builder
	for _, name := range reloadMetrics {
		kind := "gauge"
		if name == reloadsBegun {
			kind = "counter"
		}
		value := map[string]int{processID: pid, reloadNumber: number, reloadCode: code, reloadsBegun: number}[name]
		fmt.Fprintf(&b, "# TYPE %[1]s %[2]s\n%[1]s %[3]d\n", name, kind, value)
	}
	return b.String()
}

// node answers as a node does: at each look at its metrics with the next text, and
// with the last one from then on.
func node(t *testing.T, ready bool, metrics ...string) place {
	t.Helper()
	var looks atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			text := metrics[min(int(looks.Add(1)), len(metrics))-1]
			if text == "" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, text)
		case ready:
			fmt.Fprintln(w, "ready")
		default:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(node.Close)
	return place{"tcp", node.Listener.Addr().String()}
}

// TestAReloadIsFollowed looks at nodes at different moments of a reload.
func TestAReloadIsFollowed(t *testing.T) {
	t.Parallel()
	const earlier, ours = 6, 7
	for name, tc := range map[string]struct {
		metrics string
		ready   bool
		known   bool
		code    int
	}{
		"it works":                      {told(ours, 0), true, true, exitOK},
		"it waits for its database":     {told(ours, 0), false, false, exitUnavailable},
		"it has refused":                {told(ours, exitConfiguration), true, true, exitConfiguration},
		"an earlier reload was refused": {told(earlier, exitConfiguration), true, false, exitOK},
		"an earlier one took effect":    {told(earlier, 0), true, false, exitOK},
		"no metrics for a moment":       {"", true, false, exitOK},
		"an older version":              {"observerd_config_last_reload_success 1\n", true, true, exitFailure},
		"another process":               {toldBy(os.Getpid()+1, ours, 0), true, true, exitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reloadWatch{places: []place{node(t, tc.ready, tc.metrics)}, process: ownProcess(t), begun: earlier}
			known, err := w.outcome(t.Context())
			if code := exitCodeOr(err); known != tc.known || code != tc.code {
				t.Errorf("known %v, exit code %d: %v", known, code, err)
			}
		})
	}
}

// TestAReloadThatIsTakenBack has a node that looks well for a moment, and whose
// former configuration comes back before it is asked whether it is ready: what is
// ready then is not what was reloaded.
func TestAReloadThatIsTakenBack(t *testing.T) {
	t.Parallel()
	w := reloadWatch{places: []place{node(t, true, told(2, 0), told(1, 0), told(2, exitConfiguration))}, process: ownProcess(t), begun: 1}
	if err := w.wait(t.Context()); exitCodeOr(err) != exitConfiguration {
		t.Errorf("got %v, want exit code %d", err, exitConfiguration)
	}
}

// TestAStrangerIsNotSignalled has processes that are not the node which answers. They
// live on: a signal would end them.
func TestAStrangerIsNotSignalled(t *testing.T) {
	t.Parallel()
	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the stranger does not live: %v", err)
		}
		if err := stranger.Process.Kill(); err != nil {
			t.Error(err)
		}
		if state, _ := stranger.Process.Wait(); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("the stranger has ended otherwise: %v", state)
		}
	})
	folder := t.TempDir()
	socket, wrong := filepath.Join(folder, "s"), filepath.Join(folder, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("observers: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	lying := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, toldBy(stranger.Process.Pid, 0, 0))
	})}}
	lying.Start()
	t.Cleanup(lying.Close)
	for name, tc := range map[string]struct {
		at   place
		want string
		// later says that the answer may yet become another, so that it is waited for.
		later bool
	}{
		"another node":    {node(t, true, told(0, 0)), fmt.Sprintf("is process %d; write --pid %[1]d", os.Getpid()), false},
		"an older node":   {node(t, true, "observerd_config_last_reload_success 1\n"), "does not say how reloads go", false},
		"another program": {node(t, true, ""), "does another program listen there?", true},
		"nobody":          {place{"unix", filepath.Join(folder, "none")}, "no node listens on", true},
		// In another namespace that number may be another process.
		"a node with that number in a container": {node(t, true, toldBy(stranger.Process.Pid, 0, 0)+"process_start_time_seconds 1\n"), "cannot be seen from here", false},
		"a node with that number elsewhere":      {place{"unix", socket}, fmt.Sprintf("is process %d; write", os.Getpid()), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := "1m"
			if tc.later {
				timeout = "5s" // No answer at all would say something else.
			}
			var stdout, stderr strings.Builder
			args := []string{"reload", "--timeout", timeout, "--pid", strconv.Itoa(stranger.Process.Pid), "--set", "http.socket=" + tc.at.address}
			if tc.at.network == "tcp" {
				args = append(args[:len(args)-1], "http.listen="+tc.at.address, "--config", wrong)
			}
			code := run(t.Context(), args, nil, strings.NewReader(""), &stdout, &stderr)
			if code != exitFailure || stdout.Len() > 0 || !strings.Contains(stderr.String(), tc.want) || !strings.Contains(stderr.String(), "was not signalled: ") {
				t.Errorf("%d %q %q", code, stdout.String(), stderr.String())
			}
		})
	}
}

func exitCodeOr(err error) int {
	if err == nil {
		return exitOK
	}
	return exitCode(err)
}

// ownProcess is a process that goes on.
func ownProcess(t *testing.T) *os.Process {
	t.Helper()
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Release() })
	return p
}

// TestAReloadWithoutAnAnswer follows one of a node that has nothing to say.
func TestAReloadWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	nobody := place{"unix", filepath.Join(t.TempDir(), "s")}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (&reloadWatch{places: []place{nobody}, process: ownProcess(t)}).wait(ctx); exitCodeOr(err) != exitFailure || !strings.Contains(err.Error(), "within --timeout") {
		t.Errorf("got %v", err)
	}

	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&reloadWatch{places: []place{nobody}, process: ownProcess(t)}).wait(interrupted); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if known, err := (&reloadWatch{places: []place{nobody}, process: ended.Process}).outcome(t.Context()); !known || !strings.Contains(fmt.Sprint(err), "has ended") {
		t.Errorf("known %v: %v", known, err)
	}
}

// TestTheTimeOfAReload holds the time that the command waits between what a node
// may take and what the unit allows.
func TestTheTimeOfAReload(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/observerd.service")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(unit), "\nTimeoutStartSec=")
	text, _, _ := strings.Cut(rest, "\n")
	allowed, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds()})
	if err != nil {
		t.Fatal(err)
	}
	if takes := readTimeout + cfg.Scheduler.ShutdownTimeout + stopGrace; reloadTimeout <= takes || reloadTimeout >= allowed {
		t.Errorf("the command waits %s; a node may take %s, and systemd allows %s", reloadTimeout, takes, allowed)
	}
}
