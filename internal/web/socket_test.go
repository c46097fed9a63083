package web_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/test/kit/servertest"
)

// onSocket are options without a TCP address.
func onSocket(path string) web.Options {
	o := options()
	o.Listen, o.Socket = "", path
	return o
}

func TestSocketServesThePages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "for", "it", "s")
	s := start(t, onSocket(path))
	if s.Addr() != "" {
		t.Errorf("listens on %s as well", s.Addr())
	}
	for page, holds := range map[string]string{"/": "table is missing", "/healthz": "ok", "/readyz": "ready", "/metrics": "observerd_test_total 0"} {
		if resp, body := overSocket(t, path).do("GET", page); resp.StatusCode != http.StatusOK || !strings.Contains(body, holds) {
			t.Errorf("%s: %d %s", page, resp.StatusCode, body)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// TestProfilesAreOnTheSocketAlone asks for each of them on both listeners.
func TestProfilesAreOnTheSocketAlone(t *testing.T) {
	t.Parallel()
	o := options()
	o.Socket = filepath.Join(t.TempDir(), "s")
	s := start(t, o)
	for path, code := range map[string]int{
		"": 200, "heap": 200, "goroutine?debug=2": 200, "profile?seconds=1": 200, "trace?seconds=0.1": 200, "symbol": 200, "allocs": 200, "mutex": 200,
		"cmdline": 404, "nope": 404,
	} {
		resp, body := overSocket(t, o.Socket).do("GET", "/debug/pprof/"+path)
		// A profile names the program; its arguments nothing may tell.
		if resp.StatusCode != code || strings.Contains(body, strings.Join(os.Args, "\x00")) {
			t.Errorf("socket: %s: %d", path, resp.StatusCode)
		}
		if resp, body := plain(t, s).do("GET", "/debug/pprof/"+path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("address: %s: %d %s", path, resp.StatusCode, body)
		}
	}
	for _, path := range []string{"/debug/pprof", "/debug/", "/debug/requests", "/debug/events", "/debug/vars"} { // What libraries add to the mux of all.
		if resp, _ := plain(t, s).do("GET", path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("address: %s: %d", path, resp.StatusCode)
		}
	}
}

// leaveStale makes a socket that nobody serves.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no stale socket: %v", err)
	}
}

// TestStaleSocketIsReplaced leaves one behind, as a process that was killed does.
func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	leaveStale(t, path)
	start(t, onSocket(path))
	if resp, _ := overSocket(t, path).do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestLiveSocketIsRefused: the one who has it keeps it.
func TestLiveSocketIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	start(t, onSocket(path))
	_, err := web.New(t.Context(), onSocket(path))
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.Is(err, web.ErrSetting) || !strings.Contains(err.Error(), "http.socket: another process serves "+path) {
		t.Errorf("got %v", err)
	}
	if resp, _ := overSocket(t, path).do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestManyWantTheSocket starts nodes together where a dead one has left its
// socket: one gets it, and keeps it.
func TestManyWantTheSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	leaveStale(t, path)
	const many = 8
	servers, errs := make([]*web.Server, many), make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { servers[i], errs[i] = web.New(t.Context(), onSocket(path)) })
	}
	wg.Wait()
	got := 0
	for i, s := range servers {
		switch {
		case errs[i] == nil:
			got++
			s.Start()
			defer func() {
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			}()
		case !errors.Is(errs[i], syscall.EADDRINUSE):
			t.Error(errs[i])
		}
	}
	if got != 1 {
		t.Errorf("%d have it", got)
	}
	if resp, _ := overSocket(t, path).do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestOtherFilesAreLeftAlone names what is no socket.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := web.New(t.Context(), onSocket(path)); !errors.Is(err, syscall.ENOTSOCK) || !errors.Is(err, web.ErrSetting) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "keep me" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSocketOfAnotherIsNotRemoved: somebody has removed ours, and another
// process has made its own.
func TestSocketOfAnotherIsNotRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	first := start(t, onSocket(path))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start(t, onSocket(path))
	if err := first.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if resp, _ := overSocket(t, path).do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestNothingIsLeftOfAFailedStart: the address is given back when there is no
// socket to be had.
func TestNothingIsLeftOfAFailedStart(t *testing.T) {
	t.Parallel()
	s := start(t, options())
	path := filepath.Join(t.TempDir(), "s")
	o := options()
	o.Listen, o.Socket = s.Addr(), path
	if _, err := web.New(t.Context(), o); !errors.Is(err, syscall.EADDRINUSE) || !errors.Is(err, web.ErrSetting) || !strings.Contains(err.Error(), "http.listen: another process listens on "+s.Addr()) {
		t.Errorf("port in use: %v", err)
	}
	err := servertest.StartOnFreePort(t.Context(), func(port int) error {
		o.Listen, o.Socket = net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), filepath.Dir(path)
		if _, err := web.New(t.Context(), o); !errors.Is(err, syscall.ENOTSOCK) {
			return fmt.Errorf("a folder: %w", err)
		}
		o.Socket = path
		s, err := web.New(t.Context(), o)
		if err != nil {
			return err
		}
		return s.Stop(context.Background())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStopEndsProfiles: nobody waits for a profile of an hour. It does not run
// beside other tests: there is one trace at a time in a process.
func TestStopEndsProfiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := start(t, onSocket(path))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/debug/pprof/trace?seconds=3600", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := overSocket(t, path).transport
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}
