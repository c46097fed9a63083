package contend_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/github"
	"github.com/observerd/observerd/locks/redis"
	"github.com/observerd/observerd/test/kit/githubtest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// The environment of a writer, which this test binary is where it has a name.
const (
	envName     = "CONTEND_WRITER"
	envResource = "CONTEND_RESOURCE"
	envURL      = "CONTEND_URL"
	envMaster   = "CONTEND_MASTER"
	envNodes    = "CONTEND_NODES"
	envTTL      = "CONTEND_TTL"
	envToken    = "CONTEND_TOKEN" // of GitHub, whose URL is CONTEND_URL then
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envName); name != "" {
		if err := write(name); err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(redistest.Wrap(pgtest.Wrap(m)))
}

// writerTTL is the TTL of the locks of writers that are told no other.
const writerTTL = 2 * time.Second

// writer is a process that uses package locks as any other would.
type writer struct {
	name, resource string
	ttl            time.Duration
	locks          *locks.Manager
	client         http.Client
}

// provider is where a writer's locks are.
func provider(ctx context.Context) (locks.Provider, error) {
	if token := os.Getenv(envToken); token != "" {
		return github.Open(ctx, github.Options{
			Repository: githubtest.Repository, URL: os.Getenv(envURL), TTL: writerTTL, Heartbeat: writerTTL / 4, Budget: 1 << 20,
			Token: func() (string, error) { return token, nil },
		})
	}
	o := redis.Options{Master: os.Getenv(envMaster)}
	if nodes := os.Getenv(envNodes); nodes != "" {
		o.Nodes = strings.Split(nodes, ",")
	}
	return redis.Open(ctx, os.Getenv(envURL), o)
}

// write writes until SIGTERM.
func write(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p, err := provider(ctx)
	if err != nil {
		return err
	}
	w := writer{name: name, resource: os.Getenv(envResource), ttl: writerTTL, client: http.Client{Timeout: 2 * time.Minute}}
	if text := os.Getenv(envTTL); text != "" {
		if w.ttl, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	w.locks, err = locks.Open(ctx, locks.Options{Provider: p, Node: name, Subjects: []string{"order"}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		order := strconv.Itoa(1 + rand.IntN(2))
		l, err := w.locks.Acquire(ctx, locks.Descriptor{Subject: "order", Predicate: "writing", Resources: []string{order}, TTL: w.ttl}, locks.Within(5*time.Second))
		if err != nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		w.hold(ctx, l, order)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return w.locks.Close(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// hold counts a few times. It looks at its lease before it reads, and not again before it
// writes, as whoever is suspended in between could not either.
func (w *writer) hold(ctx context.Context, l *locks.Lease, order string) {
	for range 1 + rand.IntN(4) {
		if l.Context().Err() != nil || ctx.Err() != nil {
			break
		}
		value, err := strconv.ParseInt(w.ask(http.MethodGet, l, order, ""), 10, 64)
		if err != nil {
			break
		}
		pause(ctx, rand.N(50*time.Millisecond))
		if w.ask(http.MethodPost, l, order, strconv.FormatInt(value+1, 10)) == refusal {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = l.Release(ctx) // What is not released ends with its TTL.
}

const refusal = "refused"

// ask returns the answer of the resource. That it refuses one who trusts its lease is told.
func (w *writer) ask(method string, l *locks.Lease, order, value string) string {
	form := url.Values{"writer": {w.name}, "term": {l.Term()}, "fence": {fmt.Sprint(l.Fence())}, "value": {value}}
	text, code := w.send(method, order, form)
	if code != http.StatusConflict {
		return text
	}
	// A lease that has ended says so as soon as this process runs again.
	select {
	case <-l.Context().Done():
	case <-time.After(100 * time.Millisecond):
		w.send(http.MethodPut, order, form)
	}
	return refusal
}

func (w *writer) send(method, path string, form url.Values) (text string, code int) {
	request, err := http.NewRequestWithContext(context.Background(), method, w.resource+"/"+path+"?"+form.Encode(), http.NoBody)
	if err != nil {
		return "", 0
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return "", 0
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", 0
	}
	return string(body), answer.StatusCode
}

// crew are the processes of a test.
type crew struct {
	t *testing.T
	// command is that of a process by its name.
	command func(name string) *exec.Cmd

	mu    sync.Mutex
	alive map[string]*servertest.Process
}

// start lets writers of these names run until the test ends.
func start(t *testing.T, resource string, env []string, names ...string) *crew {
	return launch(t, func(name string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^$") //nolint:gosec // It is this binary.
		cmd.Env = append(append(os.Environ(), env...), envResource+"="+resource, envName+"="+name)
		cmd.Stderr = t.Output()
		return cmd
	}, names...)
}

// launch lets processes of these names run until the test ends.
func launch(t *testing.T, command func(name string) *exec.Cmd, names ...string) *crew {
	c := &crew{t: t, command: command, alive: make(map[string]*servertest.Process)}
	for _, name := range names {
		c.launch(name)
	}
	t.Cleanup(func() {
		for name := range c.alive {
			c.end(name, syscall.SIGTERM)
		}
	})
	return c
}

func (c *crew) launch(name string) {
	c.t.Helper()
	cmd := c.command(name)
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	p, err := servertest.Launch(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive[name] = p
}

func (c *crew) process(name string) *servertest.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive[name]
}

// end ends a process, which must not have ended by itself.
func (c *crew) end(name string, how syscall.Signal) {
	p := c.process(name)
	if !p.Running() {
		c.t.Errorf("%s has ended by itself: %s", name, p.State())
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 30*time.Second)
	defer cancel()
	if err := p.End(ctx, how); err != nil {
		c.t.Errorf("end %s: %v", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.alive, name)
}

// suspend stops a process, and returns what lets it go on.
func (c *crew) suspend(name string) (wake func()) {
	pid := c.process(name).Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		c.t.Errorf("suspend %s: %v", name, err)
	}
	return func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			c.t.Errorf("wake %s: %v", name, err)
		}
	}
}
