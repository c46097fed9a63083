package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Node is what the service manager is told of.
type Node interface {
	// Polling is closed when the node has begun to work.
	Polling() <-chan struct{}
	// Stuck names the loops that hang; none means healthy. It must not touch a
	// database.
	Stuck() []string
	// Doing says in one line what the node does. It holds no secret.
	Doing() string
}

// Notifier tells the service manager. A nil *Notifier has none, and does nothing.
// No method waits for the manager but [Notifier.Close].
type Notifier struct {
	mu    sync.Mutex
	queue []func(*teller)

	wake  chan struct{}
	ended chan struct{} // closed by Close: send what is left and end
	done  chan struct{} // closed by the goroutine
	close sync.Once
}

// closeTimeout is how long [Notifier.Close] waits for a manager that takes no
// message.
const closeTimeout = 5 * time.Second

// New returns the notifier of this process, nil where no service manager asks
// for one. An error means that the manager's variables cannot be read; the
// notifier works all the same, but the watchdog is not fed. Close it.
func New() (*Notifier, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil //nolint:nilnil // A nil notifier is one that does nothing.
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		err = fmt.Errorf("read WATCHDOG_USEC: %w", err)
	}
	return start(newTeller(watchdog, send)), err
}

// send hands one message to the manager.
func send(message string) error {
	sent, err := daemon.SdNotify(false, message)
	if err == nil && !sent {
		return errors.New("NOTIFY_SOCKET is gone")
	}
	return err
}

func start(t *teller) *Notifier {
	n := &Notifier{wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
	go n.run(t)
	return n
}

// Watch tells of this node from now on, in place of the one before. What goes
// wrong is logged with log.
func (n *Notifier) Watch(node Node, log *slog.Logger) {
	n.post(func(t *teller) { t.watch(node, log) })
}

// Reloading says that the configuration is loaded anew. Follow it with Reloaded, in
// a time that is bounded.
func (n *Notifier) Reloading() { n.post((*teller).reloading) }

// Reloaded says that the reload has ended: with another node to watch, or with
// the same one. A trouble, one line without secrets, is shown beside what the
// node does until the next reload; "" is none.
func (n *Notifier) Reloaded(trouble string) {
	n.post(func(t *teller) { t.reloaded(trouble) })
}

// Stopping says that the process ends, which takes that long at most.
func (n *Notifier) Stopping(within time.Duration) {
	n.post(func(t *teller) { t.stopping(within) })
}

// Ending says why the process ends, in one line without secrets. It is the last
// that the manager is told.
func (n *Notifier) Ending(why string) {
	n.post(func(t *teller) { t.ending(why) })
}

// Close sends what is left and ends. It waits for the manager, for a few seconds
// if need be, and may be called twice.
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

func (n *Notifier) post(f func(*teller)) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.queue = append(n.queue, f)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // It is awake.
	}
}

// run owns the teller.
func (n *Notifier) run(t *teller) {
	defer close(n.done)
	ticker := time.NewTicker(t.every)
	defer ticker.Stop()
	for {
		select {
		case <-n.ended:
			n.drain(t)
			return
		case <-n.wake:
			n.drain(t)
		case <-t.awaited():
			t.polls()
		case <-ticker.C:
		}
		t.tick()
	}
}

func (n *Notifier) drain(t *teller) {
	n.mu.Lock()
	queue := n.queue
	n.queue = nil
	n.mu.Unlock()
	for _, f := range queue {
		f(t)
	}
}
