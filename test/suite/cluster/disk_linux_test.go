package cluster_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk lets no file of a node grow beyond the size that the log of its
// SQLite database has, so that nothing more can be committed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(t *testing.T, h host, d *daemon){
		"there is room again": func(t *testing.T, _ host, d *daemon) { t.Helper(); limit(t, d, unix.RLIM_INFINITY) },
		"killed and restarted": func(t *testing.T, h host, d *daemon) {
			t.Helper()
			d.Kill()
			h.start(t, "a", settings{}).ready(t)
		},
		"stopped and restarted": func(t *testing.T, h host, d *daemon) {
			t.Helper()
			d.signal(t, syscall.SIGTERM)
			d.ends(t, patience) // With any code.
			h.start(t, "a", settings{}).ready(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := openPostgres(t)
			h := newHost(t, remember(t, "sqlite:"+t.TempDir()+"/observerd.db"), source.url)
			d := h.start(t, "a", settings{}).ready(t)
			source.orders(t, "before", 100)
			checkHistory(t, h.memory, h.sink(), source.rows(t))
			limit(t, d, walSize(t, h.memory))
			source.orders(t, "full", 2000)
			eventually(t, func() error {
				if d.Log.Count("SQLITE_FULL")+d.Log.Count("disk is full")+d.Log.Count("disk I/O error") == 0 {
					return errNothingYet
				}
				return errors.Join(d.answers(t, "/healthz", 200), d.answers(t, "/readyz", 503))
			})
			log, err := h.memory.logged(t)
			if err = errors.Join(err, disorder(log)); err != nil {
				t.Error(err)
			}
			if n := len(lastStatus(log, "orders")); n >= 2100 {
				t.Fatal("the disk was never full: the test proves nothing")
			}
			after(t, h, d)
			checkHistory(t, h.memory, h.sink(), source.rows(t))
		})
	}
}

// limit sets how large a file of the process may become.
func limit(t *testing.T, d *daemon, size uint64) {
	t.Helper()
	if err := unix.Prlimit(d.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}

// walSize is the size of the log that SQLite appends to.
func walSize(t *testing.T, m memory) uint64 {
	t.Helper()
	info, err := os.Stat(strings.TrimPrefix(m.url, "sqlite:") + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return uint64(info.Size()) //nolint:gosec // Sizes are not negative.
}
