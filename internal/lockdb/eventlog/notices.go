package eventlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/wait"
)

const (
	// noticeChannel is where the nodes of a cluster tell each other that events were
	// committed. A database with several clusters has one: they look once more.
	noticeChannel = "obs_event"
	// noticeEvery is between two notices of a node. PostgreSQL commits one at a time in
	// all of its databases.
	noticeEvery = 50 * time.Millisecond
	// noticeTimeout bounds one call, and quiet is after which the listening session is
	// asked whether it still stands.
	noticeTimeout = 5 * time.Second
	quiet         = time.Minute
)

// Announce tells the other nodes that this one has committed events, if [Log.Notices] runs.
// It never blocks.
func (l *Log) Announce() { wait.Wake(l.news) }

// Notices sends what is announced, outside of the commit and at most 20 times a second, and
// calls heard for the notices of all nodes, until ctx ends. It only saves waiting: readers
// of the log look by themselves. On SQLite, and behind a pooler that shares sessions, it
// does nothing.
func (l *Log) Notices(ctx context.Context, heard func()) {
	if l.db.Backend() != "postgres" {
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { l.announce(ctx) })
	pace := wait.NewBackoff(time.Second, time.Minute)
	for {
		err := l.listen(ctx, heard, pace)
		if ctx.Err() != nil || err == nil {
			return
		}
		l.opts.Logger.Debug("The session that listens for events broke, opening another", "err", sqldb.WordSession(err))
		wait.For(ctx, pace.NextBackOff())
	}
}

// announce sends one notice for all that was announced since the last.
func (l *Log) announce(ctx context.Context) {
	for wait.For(ctx, noticeEvery) {
		select {
		case <-ctx.Done():
			return
		case <-l.news:
		}
		call, cancel := context.WithTimeout(ctx, noticeTimeout)
		if _, err := l.db.Exec(call, "tell other nodes of events", l.sql.SQL().Notify, noticeChannel); err != nil && ctx.Err() == nil {
			l.opts.Logger.Debug("Other nodes were not told of events; they look by themselves", "err", err)
		}
		cancel()
	}
}

// listen listens on a session of its own until that breaks. It returns nil behind a pooler that
// shares sessions.
func (l *Log) listen(ctx context.Context, heard func(), pace *wait.Backoff) error {
	config, pooler := l.db.Session(func(config *pgx.ConnConfig) {
		config.RuntimeParams["application_name"] += " notices"
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	})
	var conn *pgx.Conn
	err := within(ctx, noticeTimeout, func(ctx context.Context) (err error) {
		conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("open the session that listens for events: %w", err)
	}
	defer func() {
		_ = within(context.WithoutCancel(ctx), noticeTimeout, conn.Close) // Nothing was written through it.
	}()
	if pooler.Pooling().Shared() {
		return nil
	}
	if err := within(ctx, noticeTimeout, func(ctx context.Context) error { _, err := conn.Exec(ctx, "LISTEN "+noticeChannel); return err }); err != nil {
		return err
	}
	pace.Reset()
	for {
		heard() // Also before the first: something may have been missed.
		if err := next(ctx, conn); err != nil {
			return err
		}
	}
}

// next waits for a notice. The server may be gone without a word.
func next(ctx context.Context, conn *pgx.Conn) error {
	for {
		err := within(ctx, quiet, func(ctx context.Context) error { _, err := conn.WaitForNotification(ctx); return err })
		if err == nil || ctx.Err() != nil || conn.IsClosed() {
			return err
		}
		if err := within(ctx, noticeTimeout, conn.Ping); err != nil {
			return err
		}
	}
}

func within(ctx context.Context, d time.Duration, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return call(ctx)
}
