package lockdb_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	process "os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/turn"
)

// envHolder tells a process that it is a holder, of which database.
const envHolder = "LOCKDB_TEST_HOLDER"

// envTTL is how long its lease lives.
const envTTL = "LOCKDB_TEST_TTL"

// envLock is the lock that it takes.
const envLock = "LOCKDB_TEST_LOCK"

// heldByProcess is the lock that a holder takes if nothing else is said.
const heldByProcess = "order-observer-poll"

// holder is a process of its own that shows itself and holds a lock, which it
// does not renew.
type holder struct {
	cmd    *process.Cmd
	boot   string
	grant  lock.Grant
	exited chan struct{}
}

// holdElsewhere starts a holder and waits until others can see it.
func holdElsewhere(t *testing.T, url string, ttl time.Duration, keys ...string) *holder {
	t.Helper()
	key := append(keys, heldByProcess)[0]
	h := &holder{exited: make(chan struct{})}
	h.cmd = process.Command(os.Args[0], "-test.run=^TestHolderProcess$")
	h.cmd.Env = append(os.Environ(), envHolder+"="+url, envTTL+"="+ttl.String(), envLock+"="+key)
	h.cmd.Stderr = os.Stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() { // the rest of a story is told by the database
		defer close(h.exited)
		_ = h.cmd.Wait()
	}()
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Boot  string
		Grant lock.Grant
	}
	if err := json.Unmarshal(line, &told); err != nil {
		t.Fatal(err)
	}
	h.boot, h.grant = told.Boot, told.Grant
	eventually(t, func() error {
		if n := count(t, url, `SELECT count(*) FROM obs_lock o JOIN obs_node n ON n.boot_id = o.boot_id WHERE o.liveness <> '' AND n.liveness <> '' AND o.boot_id = '`+h.boot+`'`); n != 1 {
			return fmt.Errorf("%d holders show themselves", n)
		}
		return nil
	})
	return h
}

// kill ends the process at once. It may be called twice.
func (h *holder) kill() {
	_ = h.cmd.Process.Kill()
	<-h.exited
}

func (h *holder) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestHolderProcess is the holder's side of holdElsewhere; as a test it does
// nothing.
func TestHolderProcess(t *testing.T) {
	url := os.Getenv(envHolder)
	if url == "" {
		return
	}
	boot := uuid.NewString()
	w := watchAs(t, url, boot)
	// Before the liveness begins, so that it finds the lease without it.
	r := request(os.Getenv(envLock))
	var err error
	if r.TTL, err = time.ParseDuration(os.Getenv(envTTL)); err != nil {
		t.Fatal(err)
	}
	r.Node = "holder"
	g, err := w.db.Leases().Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.db.Nodes().Beat(t.Context(), turn.Node{BootID: boot, Name: "holder"}); err != nil {
		t.Fatal(err)
	}
	w.live.Start(t.Context())
	line, err := json.Marshal(map[string]any{"Boot": boot, "Grant": g})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line)) //nolint:forbidigo // It is what the parent reads.
	// It is killed; should the parent have died, it ends by itself.
	for parent := os.Getppid(); os.Getppid() == parent; {
		<-time.After(100 * time.Millisecond)
	}
}

// watcher is one more process on the database, as far as others can see: it has
// connections, a keeper of leases and a liveness of its own.
type watcher struct {
	db     *lockdb.DB
	live   *liveness.Monitor
	keeper *lock.Keeper
	boot   string
	log    *logbook
	beats  atomic.Int64 // of the liveness: one for each look, at least
	quit   func()
}

// watch starts a watcher that judges as soon as it can.
func watch(t *testing.T, url string, changes ...func(o *liveness.Options)) *watcher {
	t.Helper()
	w := watchAs(t, url, uuid.NewString(), append([]func(o *liveness.Options){eager}, changes...)...)
	w.live.Start(t.Context())
	eventually(t, func() error {
		if !w.sees() {
			return fmt.Errorf("the watcher does not watch")
		}
		return nil
	})
	return w
}

// sees reports whether the watcher watches.
func (w *watcher) sees() bool { return w.live.Freed(request(heldByProcess)) != nil }

// eager judges without regard to the age of the session.
func eager(o *liveness.Options) { o.Age = time.Millisecond }

// logged counts the lines of the watcher's log with all of these words.
func (w *watcher) logged(words ...string) int { return w.log.count(words...) }

// dialectOf is the first word of a URL.
func dialectOf(url string) string {
	dialect, _, _ := strings.Cut(url, ":")
	return dialect
}
