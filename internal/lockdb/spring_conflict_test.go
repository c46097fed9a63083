package lockdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/springtest"
)

// TestConflictsAreTriedAgain makes the server undo an acquisition of ours, once
// as a failed serialization and once as the victim of a deadlock.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ours url.Values
		// gate is what a third transaction does, in whose way our acquisition is
		// until the others have come: a server looks for a deadlock once in a wait,
		// a moment after it began.
		gate string
		// first is the statement of another transaction before our
		// acquisition waits, and then its statement after that.
		first, then string
		code        string
	}{
		"failed serialization": {
			url.Values{"default_transaction_isolation": {"serializable"}}, "",
			`UPDATE int_lock SET created_date = '2000-01-02'`, `SELECT 1`, "40001",
		},
		"deadlock": {
			// The first to check for a deadlock is the victim.
			url.Values{"deadlock_timeout": {"50ms"}}, `ALTER SEQUENCE obs_fence OWNED BY NONE`,
			`UPDATE obs_lock SET node = node`, `UPDATE int_lock SET created_date = '2000-01-02'`, "40P01",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, where := springDB(t, springtest.Spring6)
			expire(t.Context(), t, where, acquire(t, db, "order-observer-poll"))
			// It must still wait when the other is told to go on.
			node := quiet(t, with(t, where, test.ours), func(o *lockdb.Options) { o.AcquireWait = time.Minute })
			if err := node.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			beside, _ := raw(t, where)
			letIn := func() error { return nil }
			if test.gate != "" {
				letIn = begin(t, beside, test.gate).Rollback
			}
			tx := begin(t, beside, test.first)
			won, finished := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := node.Leases().Acquire(t.Context(), request("order-observer-poll"))
				won <- err
			}()
			waiting(t, beside, won, 1)
			go func() { finished <- finish(t.Context(), tx, test.then) }()
			if test.gate != "" {
				waiting(t, beside, won, 2)
			}
			if err := letIn(); err != nil {
				t.Fatal(err)
			}
			if err := <-won; err != nil {
				t.Errorf("the acquisition that met %s was not tried again: %v", test.code, err)
			}
			if err := <-finished; err != nil {
				t.Errorf("the other's transaction, which was to win: %v", err)
			}
		})
	}
}

func begin(t *testing.T, db *sql.DB, statement string) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		// It never looks for a deadlock itself, so it is never the victim.
		_, err = tx.ExecContext(t.Context(), "SET LOCAL deadlock_timeout = '1min'; "+statement)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func finish(ctx context.Context, tx *sql.Tx, statement string) error {
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return err
	}
	return tx.Commit()
}

// waiting returns when so many sessions wait for another's lock.
func waiting(t *testing.T, db *sql.DB, won <-chan error, sessions int) {
	t.Helper()
	eventually(t, func() error {
		select {
		case err := <-won:
			t.Fatalf("the acquisition did not wait: %v", err)
		default:
		}
		var n int
		err := db.QueryRowContext(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		if err == nil && n < sessions {
			err = fmt.Errorf("%d sessions wait, want %d", n, sessions)
		}
		return err
	})
}
