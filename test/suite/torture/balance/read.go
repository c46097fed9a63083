package balance

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/fairness"
	"github.com/observerd/observerd/test/kit/testbed"
)

// polls reads who had which turn, from that cycle on.
func (k *cluster) polls(ctx context.Context, from int64) ([]fairness.Poll, error) {
	rows, err := k.conn.Query(ctx, `
		SELECT DISTINCT type, node, round(extract(epoch FROM turn_at) * 1000)::bigint / $1
		  FROM obs_poll
		 WHERE outcome = 'ok' AND turn_at >= $2`, k.interval().Milliseconds(), k.tick(from))
	if err != nil {
		return nil, fmt.Errorf("read the polls: %w", err)
	}
	polls, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fairness.Poll])
	if err != nil {
		return nil, fmt.Errorf("read the polls: %w", err)
	}
	return polls, nil
}

// cycle is the number of the present tick, by the database's clock.
func (k *cluster) cycle(ctx context.Context) (int64, error) {
	var cycle int64
	err := k.conn.QueryRow(ctx, `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint / $1`, k.interval().Milliseconds()).Scan(&cycle)
	if err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return cycle, nil
}

// tick is when the cycle of that number begins.
func (k *cluster) tick(cycle int64) time.Time {
	return time.Unix(0, cycle*int64(k.interval()))
}

// rest waits until three quarters of a cycle are over and returns the number of
// the next: its turns have not begun and those of the present are had, so that
// what the nodes have counted belongs to whole cycles.
func (k *cluster) rest(ctx context.Context) (next int64, err error) {
	var now int64 // milliseconds since 1970
	if err := k.conn.QueryRow(ctx, `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`).Scan(&now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	step := k.interval().Milliseconds()
	due := now - now%step + 3*step/4
	if due < now {
		due += step
	}
	if err := testbed.Wait(ctx, time.Duration(due-now)*time.Millisecond); err != nil {
		return 0, err
	}
	return due/step + 1, nil
}

// counted rests and counts attempts, again where the next cycle has begun before all
// nodes were asked: a machine that stands still at the wrong moment does so seldom
// twice.
func (k *cluster) counted(ctx context.Context) (next int64, attempts float64, err error) {
	for try := 1; ; try++ {
		if next, err = k.rest(ctx); err != nil {
			return 0, 0, err
		}
		if attempts, err = k.attempts(ctx); err != nil {
			return 0, 0, err
		}
		now, err := k.cycle(ctx)
		if err != nil || now < next || try == 5 {
			return next, attempts, err
		}
	}
}

// attempts is how many at locks of types all nodes have counted.
func (k *cluster) attempts(ctx context.Context) (sum float64, err error) {
	for _, node := range k.nodes {
		m, err := node.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		for i := range k.Types {
			sum += m.Sum("observerd_lock_attempts_total", fmt.Sprintf("lock=%q", typeName(i)+"-observer-poll"))
		}
	}
	return sum, nil
}
