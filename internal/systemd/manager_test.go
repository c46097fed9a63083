package systemd_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// manager is the service manager's end of NOTIFY_SOCKET: a real socket, in which
// messages keep their bounds.
type manager struct {
	socket string

	mu       sync.Mutex
	messages []string
	caughtUp chan struct{}
}

// catchUp is what the manager tells itself: messages arrive in the order in which
// they were sent, so all that a process said before has been heard with it.
const catchUp = "X_CATCH_UP=1"

func newManager(t *testing.T) *manager {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify") // A socket's path is short: t.TempDir's may not be.
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{socket: filepath.Join(folder, "socket"), caughtUp: make(chan struct{}, 1)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(errors.Join(err, os.RemoveAll(folder)))
	}
	var reading sync.WaitGroup
	reading.Go(func() { m.listen(conn) })
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
		_ = os.RemoveAll(folder)
		if t.Failed() {
			t.Logf("the manager was told:\n%s", strings.Join(m.messages, "\n--\n"))
		}
	})
	return m
}

func (m *manager) listen(conn *net.UnixConn) {
	buf := make([]byte, 8192)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if string(buf[:n]) == catchUp {
			m.caughtUp <- struct{}{}
			continue
		}
		m.mu.Lock()
		m.messages = append(m.messages, string(buf[:n]))
		m.mu.Unlock()
	}
}

// environment is what the manager gives a process.
func (m *manager) environment(watchdog time.Duration) []string {
	return []string{"NOTIFY_SOCKET=" + m.socket, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
}

// told returns all messages that were sent so far.
func (m *manager) told() []string {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(catchUp))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		panic(err) // The socket is the test's own.
	}
	<-m.caughtUp
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.messages)
}

// mark is where the manager is now: what it hears from here on is new.
func (m *manager) mark() int { return len(m.told()) }

// assignments returns the values of a variable since the mark, in order.
func (m *manager) assignments(since int, variable string) (values []string) {
	for _, message := range m.told()[since:] {
		for line := range strings.SplitSeq(message, "\n") {
			if value, ok := strings.CutPrefix(line, variable+"="); ok {
				values = append(values, value)
			}
		}
	}
	return values
}

// awaits waits until a variable was assigned that often since the mark.
func (m *manager) awaits(t *testing.T, since int, variable string, times int) {
	t.Helper()
	eventually(t, func() error {
		if n := len(m.assignments(since, variable)); n < times {
			return fmt.Errorf("%s came %d times, want %d", variable, n, times)
		}
		return nil
	})
}

// awaitsStatus waits for a status with all these parts since the mark.
func (m *manager) awaitsStatus(t *testing.T, since int, parts ...string) {
	t.Helper()
	eventually(t, func() error {
		for _, status := range m.assignments(since, "STATUS") {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(status, part) }) {
				return nil
			}
		}
		return fmt.Errorf("no status has %q", parts)
	})
}

// never fails the test if a variable was assigned since the mark.
func (m *manager) never(t *testing.T, since int, variable string) {
	t.Helper()
	if values := m.assignments(since, variable); len(values) > 0 {
		t.Errorf("%s=%s came", variable, values)
	}
}

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
}
