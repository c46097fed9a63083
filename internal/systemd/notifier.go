// Package systemd reports the state of the node to the service manager: that it polls,
// what it waits for, that it reloads or stops and why it ends, and that its loops turn.
// It speaks sd_notify(3) over the socket that NOTIFY_SOCKET names. Without that
// variable nothing is sent.
//
// # Messages
//
// READY=1 is sent when the node polls, and after each reload when its new node begins:
// the manager delays a further reload until then, which may be the one that names
// another database. Until READY=1 is sent, EXTEND_TIMEOUT_USEC extends the start or the
// reload again and again, as long as no loop hangs: the node waits for a database that
// is down, however long it takes, and a start that hangs ends after its timeout.
// WATCHDOG=1 is sent under the same condition. STATUS= is one line for people; any user
// of the host may read it.
package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/observerd/observerd/internal/wait"
)

// Node is the node whose state the service manager gets.
type Node interface {
	// Polling is closed when the node has begun to work.
	Polling() <-chan struct{}
	// Stuck returns the names of the loops that hang; none means healthy. It must not
	// touch a database.
	Stuck() []string
	// Doing describes in one line what the node does, without secrets.
	Doing() string
}

// Notifier notifies the service manager. A nil *Notifier does nothing. No method but
// [Notifier.Close] waits for the manager.
type Notifier struct {
	mu    sync.Mutex
	queue []func(*reporter)

	wake  chan struct{}
	ended chan struct{} // closed by Close: send the rest and end
	done  chan struct{} // closed by the goroutine
	close sync.Once
}

// closeTimeout is how long [Notifier.Close] waits for a manager that takes no
// message.
const closeTimeout = 5 * time.Second

// New returns the notifier of this process, nil where no service manager asks for
// messages. An error means that WATCHDOG_USEC cannot be read; the notifier works all
// the same, but does not feed the watchdog. The caller closes it.
func New() (*Notifier, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil //nolint:nilnil // A nil notifier is one that does nothing.
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		err = fmt.Errorf("read WATCHDOG_USEC: %w", err)
	}
	return start(newReporter(watchdog, send)), err
}

// send sends one message to the manager.
func send(message string) error {
	sent, err := daemon.SdNotify(false, message)
	if err == nil && !sent {
		return errors.New("NOTIFY_SOCKET is gone")
	}
	return err
}

func start(r *reporter) *Notifier {
	n := &Notifier{wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
	go n.run(r)
	return n
}

// Watch reports on this node from now on, in place of the node before. Errors are
// logged with log.
func (n *Notifier) Watch(node Node, log *slog.Logger) {
	n.post(func(r *reporter) { r.node, r.log, r.ready = node, log, false })
}

// Reloading reports that the configuration is loaded anew. The caller calls Reloaded
// within a limited time.
func (n *Notifier) Reloading() { n.post((*reporter).reloading) }

// Reloaded reports that the reload has ended: with another node to watch, or with the
// same one. A refusal, one line without secrets, is shown beside what the node does
// until the next reload; empty: the reload was not refused.
func (n *Notifier) Reloaded(refusal string) {
	n.post(func(r *reporter) { r.reloaded(refusal) })
}

// Stopping reports that the process ends, which takes that long at most: at once, because
// a short stop is over before the next refresh.
func (n *Notifier) Stopping(within time.Duration) {
	n.post(func(r *reporter) {
		r.stops = true
		r.report(daemon.SdNotifyStopping, extend(within), statusLine("Stopping"))
	})
}

// Ending reports why the process ends, in one line without secrets. It is the last
// message.
func (n *Notifier) Ending(why string) {
	n.post(func(r *reporter) {
		r.node = nil
		r.report(statusLine(why))
	})
}

// Close sends the messages that are left and ends. It waits for the manager, a few
// seconds at most, and may be called twice.
func (n *Notifier) Close() {
	if n == nil {
		return
	}
	n.close.Do(func() { close(n.ended) })
	select {
	case <-n.done:
	case <-time.After(closeTimeout): // The goroutine hangs in the kernel.
	}
}

func (n *Notifier) post(f func(*reporter)) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.queue = append(n.queue, f)
	n.mu.Unlock()
	wait.Wake(n.wake)
}

// run owns the reporter.
func (n *Notifier) run(r *reporter) {
	defer close(n.done)
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		select {
		case <-n.ended:
			n.drain(r)
			return
		case <-n.wake:
			n.drain(r)
		case <-r.polling():
			r.polls()
		case <-ticker.C:
		}
		r.refresh()
	}
}

func (n *Notifier) drain(r *reporter) {
	n.mu.Lock()
	queue := n.queue
	n.queue = nil
	n.mu.Unlock()
	for _, f := range queue {
		f(r)
	}
}
