package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/testbed"
)

// leaseConnections is how many a process has for its leases; the bare statements get as many.
const leaseConnections = 4

// contest is what those have found who want one key for some time.
type contest struct {
	// waits are the times from asking to having, of all of them.
	waits []time.Duration
	// won is how often each had the key.
	won  []int
	took time.Duration
}

func (c contest) rate() float64 { return float64(len(c.waits)) / c.took.Seconds() }

func (c contest) wait(q float64) time.Duration { return quantile(c.waits, q) }

// luck is how often the luckiest had the key for each time that the unluckiest had it.
func (c contest) luck() float64 { return float64(slices.Max(c.won)) / float64(slices.Min(c.won)) }

// measureCrowds lets several callers of one process want one key.
func measureCrowds(ctx context.Context, s *suite) (figures []figure, err error) {
	where, err := s.cluster.coordination(ctx, "crowd")
	if err != nil {
		return nil, err
	}
	if err := testbed.Execute(ctx, where, bareSQL); err != nil {
		return nil, err
	}
	plain, err := sql.Open("pgx", where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	plain.SetMaxOpenConns(leaseConnections)
	plain.SetMaxIdleConns(leaseConnections)
	m, _, err := openManager(ctx, where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	for _, n := range []int{crowd, 8 * crowd} {
		f, err := compareCrowds(ctx, s, plain, m, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

func compareCrowds(ctx context.Context, s *suite, plain *sql.DB, m *locks.Manager, n int) ([]figure, error) {
	wanted := descriptor(locks.Exclusive, time.Minute, 0)
	bareOnce := bareCycle(plain, insertSQL+` ON CONFLICT DO NOTHING`, key(0))
	var bare, ours []contest
	for range s.rounds {
		b, err := compete(ctx, n, s.contest, func(ctx context.Context, had func()) error {
			return untilTaken(ctx, bareOnce, had)
		})
		if err != nil {
			return nil, fmt.Errorf("%d bare contenders: %w", n, err)
		}
		o, err := compete(ctx, n, s.contest, func(ctx context.Context, had func()) error {
			return m.Do(ctx, wanted, func(context.Context, *locks.Lease) error { had(); return nil }, locks.Within(time.Minute))
		})
		if err != nil {
			return nil, fmt.Errorf("%d contenders: %w", n, err)
		}
		bare, ours = append(bare, b), append(ours, o)
	}
	return crowdFigures(s, n, bare, ours), nil
}

// untilTaken tries again without a pause. It cannot tell the time of the lock from that of
// its release.
func untilTaken(ctx context.Context, once cycle, had func()) error {
	for {
		taken, err := once(ctx)
		if err != nil {
			return err
		}
		if taken {
			had()
			return nil
		}
	}
}

// compete lets n callers lock and release again and again for that long. Those who wait at
// the end get the key still, so each has had it.
func compete(ctx context.Context, n int, long time.Duration, once func(ctx context.Context, had func()) error) (contest, error) {
	each := make([][]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range each {
		group.Go(func() error {
			for first := true; first || time.Since(began) < long; first = false {
				asked := time.Now()
				if err := once(ctx, func() { each[i] = append(each[i], time.Since(asked)) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	c := contest{took: time.Since(began)}
	for _, waits := range each {
		c.waits = append(c.waits, waits...)
		c.won = append(c.won, len(waits))
	}
	return c, err
}

func crowdFigures(s *suite, n int, bare, ours []contest) []figure {
	group := "General locks: contenders of one process for one key"
	waits := func(all []contest, q float64) number {
		return milliseconds(medianOf(all, func(c contest) time.Duration { return c.wait(q) }))
	}
	figures := []figure{
		{
			group: group, what: fmt.Sprintf("throughput, %d contenders", n),
			value:  say("%s locks/s", whole(medianOf(ours, contest.rate))),
			beside: say("bare statements without a pause %s locks/s", whole(medianOf(bare, contest.rate))),
		},
		{
			group: group, what: fmt.Sprintf("wait, %d contenders", n),
			value:  say("p50 %s ms, p99 %s ms", waits(ours, 0.5), waits(ours, 0.99)),
			beside: say("bare, with the release, p50 %s ms, p99 %s ms", waits(bare, 0.5), waits(bare, 0.99)),
		},
		{
			group: group, what: fmt.Sprintf("luckiest to unluckiest, %d contenders", n),
			value:  say("%s times as many locks", decimal(medianOf(ours, contest.luck), 2)),
			beside: say("bare %s times", decimal(medianOf(bare, contest.luck), 2)),
		},
	}
	for _, f := range figures {
		s.progress("general-locks: %s: %s, %s", f.what, f.value, f.beside)
	}
	return figures
}
