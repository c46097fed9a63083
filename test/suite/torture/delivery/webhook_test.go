//go:build nightly

package delivery

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/servertest"
)

// receiver is a target of type webhook: receiver.py, which writes what it sees.
type receiver struct {
	t                    *testing.T
	python, script, file string
	port, concurrency    int
	process              *daemon.Process
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func newReceiver(t *testing.T, concurrency int) *receiver {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("receiver.py")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, python: python, script: script, file: filepath.Join(t.TempDir(), "seen"), concurrency: concurrency}
	err = servertest.StartOnFreePort(t.Context(), func(port int) error {
		r.port = port
		return r.start(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

func (r *receiver) ways(t *testing.T, n int) (all []*netfault.Proxy) {
	t.Helper()
	for range n {
		all = append(all, netfault.Start(t, r.address()))
	}
	return all
}

func (r *receiver) entry(way *netfault.Proxy) string {
	return fmt.Sprintf("{id: %s, type: webhook, url: %q, secrets: [{secret: %q}], concurrency: %d, timeout: 3s}", sinkID, "http://"+way.Addr(), secret, r.concurrency)
}

func (*receiver) carries(piece []byte) bool { return strings.Contains(string(piece), "POST ") }

func (r *receiver) kill(context.Context) error {
	r.process.Kill()
	return nil
}

func (r *receiver) start(ctx context.Context) (err error) {
	r.process, err = daemon.Start(r.t.Context(), daemon.Options{
		Binary: r.python, Args: []string{r.script, strconv.Itoa(r.port), secret, r.file}, Name: "receiver", Folder: filepath.Dir(r.file),
		Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	for err == nil {
		conn, refused := new(net.Dialer).DialContext(ctx, "tcp", r.address())
		if refused == nil {
			return conn.Close()
		}
		if err = ctx.Err(); err == nil && !r.process.Running() {
			err = fmt.Errorf("the receiver has ended:\n%s", r.process.Log.Tail(1000))
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func (r *receiver) consumed(context.Context) (all []seen, err error) {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var e seen
		if _, err := fmt.Sscan(line, &e.stream, &e.seq, &e.id, &e.key); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// A receiver that is asked one thing at a time sees whole streams in order.
func TestWebhookUnderAllFaults(t *testing.T) { story(t, newReceiver(t, 1), byStream, atLeastOnce) }

// Keys are in order however much is under way.
func TestConcurrentWebhookUnderAllFaults(t *testing.T) {
	story(t, newReceiver(t, 8), byKey, atLeastOnce)
}
