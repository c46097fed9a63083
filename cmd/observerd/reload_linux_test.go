package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func exitCodeOr(err error) int {
	if err == nil {
		return exitOK
	}
	return exitCode(err)
}

// reloadPair is a client of a process, and what comes of its request there.
func reloadPair(t *testing.T, process func(asks chan<- reloadAnswer)) net.Conn {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client, err := new(net.Dialer).DialContext(t.Context(), "unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	requests, served := make(chan reloadAsk), make(chan struct{})
	var self atomic.Pointer[nodeProcess]
	self.Store(&nodeProcess{Config: []string{"/a.yaml"}})
	go func() {
		defer close(served)
		serveReload(ctx, server, &self, requests)
	}()
	go func() {
		select {
		case asks := <-requests:
			process(asks.answers)
		case <-served:
		}
	}()
	t.Cleanup(func() {
		_ = client.Close() // It ends when the client leaves.
		<-served
		end()
	})
	return client
}

// TestAReloadIsFollowed has processes that answer each request in their own way.
func TestAReloadIsFollowed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		said []reloadAnswer
		code int
		text string
	}{
		"it works":              {[]reloadAnswer{{Waiting: true}, {Changed: 3}}, exitOK, ""},
		"it has refused":        {[]reloadAnswer{{ExitCode: exitConfiguration, Why: "it is wrong"}}, exitConfiguration, "it is wrong"},
		"it is taken back":      {[]reloadAnswer{{Waiting: true}, {ExitCode: exitConfiguration, Why: "a newer one"}}, exitConfiguration, "a newer one"},
		"it waits for too long": {[]reloadAnswer{{Waiting: true}}, exitUnavailable, "waits for its coordination database"},
		"it says nothing":       {nil, exitFailure, "within --timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := reloadPair(t, func(asks chan<- reloadAnswer) {
				for _, answer := range tc.said {
					asks <- answer
				}
			})
			timeout := time.Minute
			if tc.code == exitUnavailable || len(tc.said) == 0 {
				timeout = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			changed, err := followReload(ctx, client)
			if code := exitCodeOr(err); code != tc.code || code == exitOK && changed != 3 || code != exitOK && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("exit code %d, %d keys: %v", code, changed, err)
			}
		})
	}
}

// TestAReloadWithoutAnEnd follows one of a process that ends, and one that nobody
// waits for any more.
func TestAReloadWithoutAnEnd(t *testing.T) {
	t.Parallel()
	client, process := net.Pipe()
	go func() {
		_, _ = process.Read(make([]byte, len(reloadRequest)))
		_ = process.Close()
	}()
	if _, err := followReload(t.Context(), client); exitCodeOr(err) != exitFailure || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("got %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	client = reloadPair(t, func(chan<- reloadAnswer) { cancel() })
	if _, err := followReload(ctx, client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestNoRequestIsNoReload has clients that only look.
func TestNoRequestIsNoReload(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "GET / HTTP/1.1\n", "reload"} {
		client := reloadPair(t, func(chan<- reloadAnswer) { t.Errorf("%q reloads", text) })
		if _, err := client.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := client.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%q is answered: %v", text, err)
		}
	}
}

// TestAStrangerIsNotAsked has processes that are no node. They live on.
func TestAStrangerIsNotAsked(t *testing.T) {
	t.Parallel()
	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stranger.Process.Kill(); err != nil {
			t.Error(err)
		}
		if state, _ := stranger.Process.Wait(); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("the stranger has ended otherwise: %v", state)
		}
	})
	ask := func(want string) {
		t.Helper()
		var stdout, stderr strings.Builder
		code := run(t.Context(), []string{"reload", "--pid", strconv.Itoa(stranger.Process.Pid)}, nil, strings.NewReader(""), &stdout, &stderr)
		if code != exitFailure || stdout.Len() > 0 || !strings.Contains(stderr.String(), "no node was asked: "+want) {
			t.Errorf("%d %q %q", code, stdout.String(), stderr.String())
		}
	}
	ask("process " + strconv.Itoa(stranger.Process.Pid) + " does not listen")
	name, err := reloadSocket(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ask("another process listens instead of")
}

// TestOnlyItsUserReloadsANode asks a node of root as somebody else.
func TestOnlyItsUserReloadsANode(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has others to ask as")
	}
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/config.yaml")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "config.yaml"), text, 0o600))
	node := exec.CommandContext(t.Context(), "/proc/self/exe")
	node.Args, node.Dir = []string{"observerd", "run"}, folder
	must(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		client := exec.CommandContext(t.Context(), "/proc/self/exe")
		client.Args, client.Dir = []string{"observerd", "reload", "--pid", strconv.Itoa(node.Process.Pid)}, "/"
		client.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		output, _ := client.CombinedOutput()
		if client.ProcessState.ExitCode() == exitDenied && strings.Contains(string(output), "only the user of the node, and root, may reload it") {
			return
		}
		if !strings.Contains(string(output), "does not listen") || time.Now().After(deadline) {
			t.Fatalf("exit code %d: %s", client.ProcessState.ExitCode(), output)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestTheNodeIsFound has two nodes with configurations of their own, one of them in a folder
// with a link to its file, beside processes that are no nodes.
func TestTheNodeIsFound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/config.yaml")
	must(t, err)
	folders, pids := make([]string, 2), make([]string, 2)
	for i := range folders {
		folders[i] = t.TempDir()
		must(t, os.WriteFile(filepath.Join(folders[i], "config.yaml"), text, 0o600))
		pids[i] = startNode(t, folders[i])
	}
	must(t, os.Symlink(filepath.Join(folders[1], "config.yaml"), filepath.Join(folders[1], "link.yaml")))
	reload := func(folder string, args ...string) (code int, said string) {
		client := exec.CommandContext(t.Context(), "/proc/self/exe")
		client.Args, client.Dir = append([]string{"observerd", "reload"}, args...), folder
		output, _ := client.CombinedOutput()
		return client.ProcessState.ExitCode(), string(output)
	}
	for folder, args := range map[string][]string{
		folders[0]: nil,                                                  // The file is in the folder.
		"/":        {"--config", filepath.Join(folders[1], "link.yaml")}, // It has another name.
		"/tmp":     {"--pid", pids[0]},
	} {
		if code, said := reload(folder, args...); code != exitOK || said != "reloaded; no key has changed\n" {
			t.Errorf("%s %q: %d %s", folder, args, code, said)
		}
	}
	code, said := reload("/")
	if code != exitUsage || !strings.Contains(said, "there are several nodes on this host") || !strings.Contains(said, "process "+pids[0]+" with "+folders[0]+"/config.yaml") || !strings.Contains(said, "use the --pid of one") {
		t.Errorf("of several nodes: %d %s", code, said)
	}
	code, said = reload("/", "--config", "/none.yaml")
	if code != exitFailure || !strings.Contains(said, "none on this host runs with /none.yaml; there is process ") {
		t.Errorf("of another configuration: %d %s", code, said)
	}
	pid, err := strconv.Atoi(pids[1])
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	code, said = reload(folders[1])
	if code != exitFailure || !strings.Contains(said, "process "+pids[1]+" with what it does not say: it hangs") {
		t.Errorf("of a node that hangs: %d %s", code, said)
	}
}

// startNode starts a node in a folder with its configuration, and waits until it takes
// requests.
func startNode(t *testing.T, folder string) (pid string) {
	t.Helper()
	node := exec.CommandContext(t.Context(), "/proc/self/exe")
	node.Args, node.Dir = []string{"observerd", "run"}, folder
	must(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if p, err := describe(t.Context(), node.Process.Pid); err == nil && len(p.Config) > 0 {
			return strconv.Itoa(node.Process.Pid)
		}
		if time.Now().After(deadline) {
			t.Fatal("the node takes no requests")
		}
	}
}

// TestASocketOfAnotherProcessIsNoNode has a process listen under a number that is not its
// own, as one might that wants to be asked in the place of a node.
func TestASocketOfAnotherProcessIsNoNode(t *testing.T) {
	t.Parallel()
	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	must(t, stranger.Start())
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	name, err := reloadSocket(stranger.Process.Pid)
	must(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", name)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	list, err := os.ReadFile("/proc/net/unix")
	must(t, err)
	if !slices.Contains(reloadPIDs(string(list)), stranger.Process.Pid) {
		t.Fatal("the kernel does not list the socket")
	}
	running, err := runningNodes(t.Context())
	must(t, err)
	if slices.ContainsFunc(running, func(p nodeProcess) bool { return p.PID == stranger.Process.Pid }) {
		t.Errorf("the stranger is taken for a node: %v", running)
	}
}
