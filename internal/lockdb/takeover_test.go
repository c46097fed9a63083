package lockdb_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
)

// TestEveryTakeoverIsTold takes a lock the moment its lease ends, again and
// again: the end must not fall between two looks of one acquisition.
func TestEveryTakeoverIsTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		const times = 200
		log := &logbook{}
		db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		for key, locks := range map[string]lock.Provider{"pollers": db.Leases(), "general": database.On(db, slog.New(slog.NewTextHandler(log, nil)))} {
			r := request(key)
			r.TTL = 5 * time.Millisecond
			for taken := 0; taken <= times; {
				switch _, err := locks.Acquire(t.Context(), r); {
				case err == nil:
					taken++
				case !errors.Is(err, lock.ErrHeld):
					t.Fatal(err)
				}
			}
			if n := log.count("Lease taken over", "rule=ttl", "lock="+key); n != times {
				t.Errorf("%d of %d takeovers of %s were told", n, times, key)
			}
		}
	})
}
