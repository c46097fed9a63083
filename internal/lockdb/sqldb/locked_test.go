package sqldb_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// TestAttemptOutlivesItsCaller ends the context of an attempt that has begun: its session would
// end with it, and the statement might be carried out after its release.
func TestAttemptOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	db, err := sqldb.Open(sqldb.Options{URL: lockdbtest.SQLite(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for name, giveUp := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		},
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		caller, cancel := giveUp(t.Context())
		defer cancel()
		err := db.Attempt(caller, func(ctx context.Context) error {
			<-caller.Done()
			time.Sleep(10 * time.Millisecond)
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("%s: the attempt ended with its caller: %v", name, err)
		}
	}
}
