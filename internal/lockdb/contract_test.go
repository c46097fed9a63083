package lockdb_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lockdb"
)

// TestLeasesKeepTheContract asks both providers of the coordination database.
func TestLeasesKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(db *lockdb.DB) lock.Provider{
		"pollers": func(db *lockdb.DB) lock.Provider { return db.Leases() },
		"general": func(db *lockdb.DB) lock.Provider { return general(db) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keepsTheContract(t, of)
		})
	}
}

func keepsTheContract(t *testing.T, of func(db *lockdb.DB) lock.Provider) {
	t.Helper()
	for name, url := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				where := url(t)
				return locktest.Harness{
					MinTTL: time.Second,
					Provider: func() lock.Provider {
						db := open(t, where)
						if err := db.Ready(t.Context()); err != nil {
							t.Fatal(err)
						}
						return of(db)
					},
					Expire: func(t *testing.T, g lock.Grant) { expire(t.Context(), t, where, g) },
					Date: func(t *testing.T, g lock.Grant, ahead time.Duration) {
						if g.Mode.Alone() {
							date(t, where, g.Term, ahead)
						} else {
							dateHold(t, where, g, ahead)
						}
					},
					Failures: func(t *testing.T) []lock.Failure { return failures(t, where) },
					Guarded: func(t *testing.T, statement string, args []any) int64 {
						db, _ := raw(t, where)
						result, err := db.ExecContext(t.Context(), statement, args...)
						if err != nil {
							t.Fatal(err)
						}
						n, err := result.RowsAffected()
						if err != nil {
							t.Fatal(err)
						}
						return n
					},
				}
			})
		})
	}
}

// failures reads those that are known, as a person would.
func failures(t *testing.T, url string) (known []lock.Failure) {
	t.Helper()
	db, _ := raw(t, url)
	rows, err := db.QueryContext(t.Context(), `SELECT region, name, subject, predicate, failures FROM obs_lock_failure`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var f lock.Failure
		if err := rows.Scan(&f.Region, &f.Key, &f.Subject, &f.Predicate, &f.Count); err != nil {
			t.Fatal(err)
		}
		known = append(known, f)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return known
}
