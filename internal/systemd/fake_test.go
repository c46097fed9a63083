package systemd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a service manager and a node in one, for stories in simulated time.
type fake struct {
	mu       sync.Mutex
	messages []string
	deaf     bool
	stuck    []string
	does     string
	polling  chan struct{}

	log      bytes.Buffer // read when the notifier rests
	notifier *Notifier
}

// story runs a notifier of a node that starts, in simulated time.
func story(t *testing.T, watchdog time.Duration, f func(t *testing.T, f *fake)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &fake{does: "Waits", polling: make(chan struct{})}
		x.notifier = start(newReporter(watchdog, x.send))
		defer x.notifier.Close()
		x.notifier.Watch(x, x.logger())
		synctest.Wait()
		f(t, x)
	})
}

func (x *fake) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(&x.log, nil)) }

func (x *fake) send(message string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deaf {
		return errors.New("nobody listens")
	}
	x.messages = append(x.messages, message)
	return nil
}

func (x *fake) Polling() <-chan struct{} { return x.polling }

func (x *fake) Stuck() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stuck
}

func (x *fake) Doing() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.does
}

// set changes what the node or the manager does.
func (x *fake) set(f func()) {
	x.mu.Lock()
	f()
	x.mu.Unlock()
}

// heard returns what the manager was told since the last call.
func (x *fake) heard() string {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	text := strings.Join(x.messages, "\n--\n")
	x.messages = nil
	return text
}

// during returns what the manager is told while that time passes.
func (x *fake) during(d time.Duration) string {
	x.heard()
	time.Sleep(d)
	return x.heard()
}

// has fails the test unless the text has all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// lacks fails the test if the text has one of the parts.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in:\n%s", part, text)
		}
	}
}
