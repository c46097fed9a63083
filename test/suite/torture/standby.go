package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// standby follows the coordination server, but for most of the time it shows
// what was at an earlier one. It answers whoever comes.
type standby struct {
	*server
	// way is that of all nodes.
	way *gate
}

func openStandby(ctx context.Context, primary *server) (*standby, error) {
	pg, err := primary.pg.Follow(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the standby of the %s server: %w", primary.name, err)
	}
	s := &standby{server: &server{name: "standby", pg: pg}}
	if s.way, err = openGate(ctx, s.address()); err != nil {
		return nil, errors.Join(err, pg.Close())
	}
	return s, nil
}

func (s *standby) close() error {
	s.way.Close()
	return s.pg.Close()
}

// catchUpLimit bounds how long a standby replays what was committed since it
// did last, be it that the primary has just started again.
const catchUpLimit = 20 * time.Second

// catchUp lets the standby replay all that the primary has committed, and
// nothing after it.
func (s *standby) catchUp(ctx context.Context, primary *server) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	committed, err := primary.shownBy(ctx, "SELECT pg_current_wal_flush_lsn()::text")
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.url())
	if err != nil {
		return fmt.Errorf("connect to the standby: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, wait := range []struct {
		action, until string
		args          []any
	}{
		{"SELECT pg_wal_replay_resume()", "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", []any{committed}},
		{"SELECT pg_wal_replay_pause()", "SELECT pg_get_wal_replay_pause_state() = 'paused'", nil},
	} {
		if _, err := conn.Exec(ctx, wait.action); err != nil {
			return fmt.Errorf("let the standby catch up: %w", err)
		}
		for done := false; !done; sleep(ctx, 20*time.Millisecond) {
			if err := conn.QueryRow(ctx, wait.until, wait.args...).Scan(&done); err != nil {
				return fmt.Errorf("let the standby catch up: %w", err)
			}
		}
	}
	return nil
}
