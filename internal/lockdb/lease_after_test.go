package lockdb_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
)

// TestDelayedReleaseIsOfNoProcess looks at what others would take a lock by: its row must
// not be that of a process, whose end would free it. A lock that is shared is of none anyway.
func TestDelayedReleaseIsOfNoProcess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		db, err := lockdb.Open(lockdb.Options{URL: url, BootID: "boot"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		leases := general(db)
		alone := acquire(t, db, "alone")
		shared := request("shared")
		shared.Mode = lock.Shared
		g, err := leases.Acquire(t.Context(), shared)
		if err != nil {
			t.Fatal(err)
		}
		ours := func() (n int) {
			return count(t, url, fmt.Sprintf(`SELECT count(*) FROM obs_lock WHERE boot_id <> '' AND term = '%s'`, alone.Term))
		}
		if n := ours(); n != 1 {
			t.Fatalf("%d leases are of this process, want 1", n)
		}
		for _, g := range []lock.Grant{alone, g} {
			if err := leases.ReleaseAfter(t.Context(), g, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if n := ours(); n != 0 {
			t.Errorf("%d leases are of this process", n)
		}
		nobody := count(t, url, `SELECT count(*) FROM int_lock l JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
			WHERE o.lock_key = 'alone' AND o.boot_id = '' AND o.ttl_ms = 3600000 AND o.group_term <> o.term`)
		part := count(t, url, `SELECT count(*) FROM int_lock l JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
			WHERE h.lock_key = 'shared' AND h.ttl_ms = 3600000`)
		if nobody != 1 || part != 1 {
			t.Errorf("rows that nobody holds: %d and %d, want one of each", nobody, part)
		}
	})
}

// A lock whose time was set by its last holder was not taken from it.
func TestDelayedReleaseIsNoTakeover(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		log := &logbook{}
		db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		leases := database.On(db, slog.New(slog.NewTextHandler(log, nil)))
		for _, mode := range []lock.Mode{"", lock.Exclusive, lock.Shared} {
			r := request("short " + string(mode))
			r.Mode = mode
			g, err := leases.Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if err := leases.ReleaseAfter(t.Context(), g, 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			for r.Mode = lock.Exclusive; ; {
				_, err := leases.Acquire(t.Context(), r)
				if err == nil {
					break
				}
				if !errors.Is(err, lock.ErrHeld) {
					t.Fatal(err)
				}
			}
		}
		if n := log.count("Lease taken over"); n != 0 {
			t.Errorf("%d takeovers were told", n)
		}
	})
}

func TestDelayedReleaseWaitsForItsRow(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	db := open(t, url)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, db, "a")
	tx := stranger(t, url, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, []string{"a"})
	released := make(chan error, 1)
	go func() { released <- general(db).ReleaseAfter(t.Context(), g, time.Hour) }()
	waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
	if _, err := db.Leases().Acquire(t.Context(), request("a")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
}
