package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/turn"
)

const (
	// goalLocking and goalTurnMemory are parts of a turn.
	goalLocking, goalTurnMemory = 0.04, 0.08
	turnRows                    = 1_000
)

// measureTurn lets the real scheduler take turns, each with 1,000 new rows,
// and sums up the time of all that would not be there without the lock.
func measureTurn(ctx context.Context, s *suite) ([]figure, error) {
	t, err := newTurns(ctx, s)
	if err != nil {
		return nil, err
	}
	defer t.close()
	s.progress("turn: taking %d turns, one a second", s.turns)
	if err := t.take(ctx, s.turns+1); err != nil {
		return nil, err
	}
	// The first turn connects and prepares.
	spans := t.meter.ended()[1:]
	return t.figures(spans), nil
}

func (*turns) figures(spans []span) []figure {
	turn := medianOf(spans, func(p span) time.Duration { return p.whole })
	one := func(what string, goal float64, took func(span) time.Duration, share func(span) float64) figure {
		part := medianOf(spans, share)
		return figure{
			group: "Locking's share of a poll of 1,000 rows",
			what:  what, value: say("%s%%", decimal(100*part, 1)),
			beside: say("%s ms of %s ms, medians of %s turns", milliseconds(medianOf(spans, took)), milliseconds(turn), whole(len(spans))),
			goal:   fmt.Sprintf("under %.0f%% of the turn", 100*goal), met: []bool{part < goal},
		}
	}
	return []figure{
		one("the lock: acquire and release", goalLocking, func(p span) time.Duration { return p.locking }, span.lockShare),
		one("the lock and the memory of turns", goalTurnMemory, func(p span) time.Duration { return p.locking + p.memory }, span.bothShare),
	}
}

// turns is a node with one type and one observer.
type turns struct {
	db     *lockdb.DB
	source *postgres.Source
	keeper *lock.Keeper
	meter  *meter
	sched  *schedule.Scheduler
}

func newTurns(ctx context.Context, s *suite) (t *turns, err error) {
	t = &turns{meter: &meter{turns: make(chan struct{}, 1)}}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	source, err := s.makeOrders(ctx, turnRows)
	if err != nil {
		return t, err
	}
	where, err := s.cluster.coordination(ctx, "turn")
	if err != nil {
		return t, err
	}
	if t.db, err = openStore(ctx, where); err != nil {
		return t, err
	}
	if t.source, err = postgres.Open(postgres.Options{URL: source}); err != nil {
		return t, err
	}
	t.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: timedLeases{t.db.Leases(), t.meter}})
	t.sched = schedule.New(schedule.Options{
		Node:    turn.Node{BootID: "bench", Name: "bench", Backend: t.db.Backend()},
		Types:   []schedule.Type{t.typ()},
		Keeper:  t.keeper,
		Store:   timedStore{t.db.Schedule(), t.meter},
		Enabled: true,
	})
	return t, nil
}

func (t *turns) typ() schedule.Type {
	return schedule.Type{
		Name: "order", Interval: time.Second, Request: request("order-observer-poll"),
		Observers: []schedule.Observer{&freshPoller{source: t.source, db: t.db}},
	}
}

// take waits until that many turns were taken.
func (t *turns) take(ctx context.Context, n int) (err error) {
	if err := t.sched.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.sched.Stop(context.WithoutCancel(ctx))) }()
	patience := time.NewTimer(time.Minute + time.Duration(5*n)*time.Second)
	defer patience.Stop()
	for len(t.meter.ended()) < n {
		select {
		case <-t.meter.turns:
		case <-patience.C:
			return fmt.Errorf("only %d of %d turns were taken", len(t.meter.ended()), n)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// close ends what was opened. What it wrote is about to be dropped.
func (t *turns) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if t.keeper != nil {
		_ = t.keeper.Close(ctx)
	}
	if t.source != nil {
		_ = t.source.Close()
	}
	if t.db != nil {
		_ = t.db.Close()
	}
}
