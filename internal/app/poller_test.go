package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// slow is a source that hands over some rows and then hangs until its reader
// gives up.
type slow struct{ rows int }

func (s slow) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return observer.Horizon{Cursor: "9"}, nil
}

func (s slow) KeyOrder(context.Context, observer.Query) (string, error) { return "", nil }

func (s slow) Identity(context.Context) (string, error) { return "", nil }

func (s slow) CursorAt(context.Context, observer.Query, time.Time) (string, error) { return "9", nil }

func (s slow) Read(ctx context.Context, _ observer.Query, _ observer.Range) (observer.Rows, error) {
	return &slowRows{ctx: ctx, left: s.rows}, nil
}

func (s slow) Restate(cursor, _ string) string { return cursor }

func (s slow) Compare(a, b string) int { return len(a) - len(b) }

func (r *slowRows) Columns() []observer.Column { return nil }

func (r *slowRows) KeyColumns() []observer.KeyColumn { return nil }

func (r *slowRows) KeyOrder() string { return "" }

type slowRows struct {
	ctx  context.Context //nolint:containedctx // It is the read's own.
	left int
}

func (r *slowRows) Next() bool {
	if r.left == 0 {
		<-r.ctx.Done()
		return false
	}
	r.left--
	return true
}

func (r *slowRows) Row() *observer.Row {
	return &observer.Row{Key: "k" + string(rune('0'+r.left)), Cursor: "1", Time: time.Unix(1, 0), Data: []byte(`{}`)}
}

func (r *slowRows) Err() error   { return r.ctx.Err() }
func (r *slowRows) Close() error { return nil }

// coordination returns a coordination database on SQLite that is up to date.
func coordination(t *testing.T, log *slog.Logger) *lockdb.DB {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestPollThatReachesItsLimit shows that a poll which got on before its time
// was over is no failure, and that one which did not is.
func TestPollThatReachesItsLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rows int
		want error
	}{"with progress": {2, nil}, "without": {0, observer.ErrPollTime}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { pollToItsLimit(t, tc.rows, tc.want) })
		})
	}
}

func pollToItsLimit(t *testing.T, rows int, want error) {
	log := slog.New(slog.DiscardHandler)
	db := coordination(t, log)
	g, err := db.Leases().Acquire(t.Context(), lock.Request{Key: "order-observer-poll", Region: "DEFAULT", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPoller(config.Observer{
		ID: "orders", Event: "E", Detect: config.DetectNew, Table: "orders", Key: []string{"id"}, Timestamp: "at",
		ChunkSize: 1, MaxGone: 20, PollTimeout: 2 * time.Second,
	}, definition{}, slow{rows}, db, log)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := p.Poll(t.Context(), g)
	if !errors.Is(err, want) || (want == nil && err != nil) {
		t.Errorf("the poll ended with %v, want %v", err, want)
	}
	if (stats.Events > 0) != (rows > 0) {
		t.Errorf("%d events of %d rows", stats.Events, rows)
	}
}
