package contend_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/kubetest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// registry creates a resource for each request that wants one.
type registry struct {
	mu      sync.Mutex
	found   map[string]string
	created int
	// during is called once, before the next creation.
	during func()
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		g.mu.Lock()
		during := g.during
		g.during = nil
		g.mu.Unlock()
		if during != nil {
			during()
		}
		if r.Context().Err() != nil {
			return // Its client is gone.
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodPost {
		g.created++
		g.found[r.URL.Path] = fmt.Sprintf("resource-%d", g.created)
	}
	if id, ok := g.found[r.URL.Path]; ok {
		fmt.Fprint(w, id)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// pods are three processes of examples/kubernetes, and where they listen.
func pods(t *testing.T, g *registry, wait time.Duration) (c *crew, addresses map[string]string) {
	binary := filepath.Join(t.TempDir(), "claims")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Package: "github.com/observerd/observerd/examples/kubernetes", Out: binary}); err != nil {
		t.Fatal(err)
	}
	s := kubetest.Start(t)
	namespace, config := s.Namespace(t), s.Kubeconfig(t, kubetest.Admin)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	addresses = make(map[string]string)
	for _, name := range []string{"a", "b", "c"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[name] = listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c = launch(t, func(name string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, //nolint:gosec // The test has built it.
			"-pod", name, "-listen", addresses[name], "-registry", server.URL, "-kubeconfig", config, "-namespace", namespace, "-ttl", "2s", "-wait", wait.String())
		cmd.Stderr = t.Output()
		return cmd
	}, "a", "b", "c")
	for _, address := range addresses {
		waittest.Eventually(t, time.Minute, func() error {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	}
	return c, addresses
}

// claim asks a pod for the resource; empty where the pod does not answer.
func claim(t *testing.T, address, fingerprint string) string {
	text, code := ask(address, fingerprint)
	if code != 0 && code != http.StatusOK {
		t.Errorf("%s answers %d: %s", address, code, text)
	}
	return text
}

func ask(address, fingerprint string) (text string, code int) {
	w := writer{resource: "http://" + address, client: http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}}
	return w.send(http.MethodPost, "resources/"+fingerprint, nil)
}

// TestLoserAsksAgain has two controllers for one node, which do not wait for the lock: the loser is
// told so, and asks again a tenth of a second later, until the node is there.
func TestLoserAsksAgain(t *testing.T) {
	t.Parallel()
	g := &registry{found: make(map[string]string)}
	_, addresses := pods(t, g, time.Millisecond)
	var refused int
	g.during = func() {
		for ; refused < 3; pause(t.Context(), 100*time.Millisecond) {
			text, code := ask(addresses["b"], "worker-1")
			if code != http.StatusServiceUnavailable {
				t.Errorf("the loser is answered %d: %s", code, text)
				return
			}
			refused++
		}
	}
	if id := claim(t, addresses["a"], "worker-1"); id != "resource-1\n" {
		t.Errorf("the winner got %q", id)
	}
	if id := claim(t, addresses["b"], "worker-1"); id != "resource-1\n" || refused != 3 || g.created != 1 {
		t.Errorf("the loser got %q after %d refusals, %d were created", id, refused, g.created)
	}
}

// TestClaimsOfOneFingerprint has a hundred requests at once, to three pods, and one of them killed
// while it creates: one resource, which all others find.
func TestClaimsOfOneFingerprint(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"all live": false, "one is killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &registry{found: make(map[string]string)}
			c, addresses := pods(t, g, time.Minute)
			if kill {
				g.during = func() { c.end("a", syscall.SIGKILL) }
				if id := claim(t, addresses["a"], "4711"); id != "" {
					t.Fatalf("a pod that was killed has answered %s", id)
				}
				delete(addresses, "a")
			}
			began := time.Now()
			answers := make(chan string, 100)
			var work sync.WaitGroup
			for n := range cap(answers) {
				work.Go(func() {
					pod := addresses[string(rune('a'+n%3))]
					if pod == "" {
						pod = addresses["b"]
					}
					answers <- claim(t, pod, "4711")
				})
			}
			work.Wait()
			close(answers)
			for id := range answers {
				if id != "resource-1\n" {
					t.Errorf("a request got %q", id)
				}
			}
			if g.created != 1 {
				t.Errorf("%d resources were created", g.created)
			}
			t.Logf("100 requests in %s", time.Since(began))
		})
	}
}
