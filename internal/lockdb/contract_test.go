package lockdb_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/pgtest"
)

func TestLeasesKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":                      func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "observerd.db") },
		"postgres":                    func(t *testing.T) string { return pgtest.New(t) },
		"postgres with EXPIRED_AFTER": withExpiry,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				where := url(t)
				if err := open(t, where).Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				return locktest.Harness{
					MinTTL: time.Second,
					Provider: func() lock.Provider {
						db := open(t, where)
						if err := db.Ready(t.Context()); err != nil {
							t.Fatal(err)
						}
						return db.Leases()
					},
					Expire: func(t *testing.T, g lock.Grant) { expire(t.Context(), t, where, g) },
					Date:   func(t *testing.T, g lock.Grant, ahead time.Duration) { date(t, where, g.Term, ahead) },
				}
			})
		})
	}
}
