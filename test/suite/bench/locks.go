package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	goalLockRatio = 1.3
	goalContended = 20 * time.Millisecond
	// crowd is how many connections there are where there is more than one.
	crowd = 8
)

// cycle takes a lock and gives it back. It reports false when another had it.
type cycle func(context.Context) (taken bool, err error)

// side is one way to lock, as one cycle for each of its connections.
type side []cycle

func measureLocks(ctx context.Context, s *suite) ([]figure, error) {
	where, err := s.cluster.coordination(ctx, "locks")
	if err != nil {
		return nil, err
	}
	l, err := openLockers(ctx, where)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var figures []figure
	for _, n := range []int{1, crowd} {
		f, err := compareLocks(ctx, s, l, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	contended, err := contend(ctx, s, l)
	if err != nil {
		return nil, err
	}
	figures = append(figures, contended...)
	for i := range figures {
		figures[i].group = "Locks: acquire and release on PostgreSQL"
	}
	return figures, nil
}

// lap is one round of a comparison.
type lap struct{ bare, ours time.Duration }

func (l lap) ratio() float64 { return float64(l.ours) / float64(l.bare) }

// compareLocks lets n connections lock n keys, with the bare statements and
// with ours.
func compareLocks(ctx context.Context, s *suite, l *lockers, n int) (figure, error) {
	// One lap more than is counted: the first one prepares the statements.
	var laps []lap
	for range s.rounds + 1 {
		bare, err := together(ctx, l.bare(n), s.lockCycles)
		if err != nil {
			return figure{}, fmt.Errorf("the bare statements: %w", err)
		}
		ours, err := together(ctx, l.leases(n), s.lockCycles)
		if err != nil {
			return figure{}, fmt.Errorf("the leases: %w", err)
		}
		laps = append(laps, lap{median(bare.taken), median(ours.taken)})
	}
	laps = laps[1:]
	ratio := medianOf(laps, lap.ratio)
	f := figure{
		what:   fmt.Sprintf("p50, %d connections with a key each", n),
		value:  say("%s ms, %s times the bare statements", milliseconds(medianOf(laps, func(l lap) time.Duration { return l.ours })), decimal(ratio, 2)),
		beside: say("bare INSERT + DELETE %s ms", milliseconds(medianOf(laps, func(l lap) time.Duration { return l.bare }))),
		goal:   "at most 1.3 times the bare statements", met: []bool{ratio <= goalLockRatio},
	}
	if n == 1 {
		f.what = "p50, 1 connection"
	}
	s.progress("locks: %s: %s, %s", f.what, f.value, f.beside)
	return f, nil
}

// contend lets everybody want one key, without a pause between two attempts:
// worse than any cluster will do.
func contend(ctx context.Context, s *suite, l *lockers) ([]figure, error) {
	var bare, ours durations
	for range s.rounds {
		b, err := together(ctx, l.bareContenders(crowd), s.lockCycles)
		if err != nil {
			return nil, fmt.Errorf("the bare contenders: %w", err)
		}
		o, err := together(ctx, l.contenders(crowd), s.lockCycles)
		if err != nil {
			return nil, fmt.Errorf("the contenders: %w", err)
		}
		bare.add(b)
		ours.add(o)
	}
	p95 := func(d []time.Duration) time.Duration { return quantile(d, 0.95) }
	all := figure{
		what:   fmt.Sprintf("p95 of an attempt, %d contenders for one key", crowd),
		value:  say("%s ms (%s%% got the lock)", milliseconds(p95(ours.all())), whole(100*len(ours.taken)/max(1, len(ours.all())))),
		beside: say("bare INSERT … ON CONFLICT DO NOTHING + DELETE %s ms", milliseconds(p95(bare.all()))),
		goal:   "under 20 ms", met: []bool{p95(ours.all()) < goalContended},
	}
	won := figure{
		what:   "p95 of those that got it, with the release",
		value:  say("%s ms", milliseconds(p95(ours.taken))),
		beside: say("bare %s ms", milliseconds(p95(bare.taken))),
		goal:   "under 20 ms", met: []bool{p95(ours.taken) < goalContended},
	}
	s.progress("locks: %s: %s", all.what, all.value)
	return []figure{all, won}, nil
}

// durations are those of the attempts that took the lock, and of the others.
type durations struct{ taken, refused []time.Duration }

func (d *durations) add(other durations) {
	d.taken = append(d.taken, other.taken...)
	d.refused = append(d.refused, other.refused...)
}

func (d *durations) all() []time.Duration {
	return append(append([]time.Duration(nil), d.taken...), d.refused...)
}

// together runs each connection's cycle that many times, all at once.
func together(ctx context.Context, s side, times int) (durations, error) {
	each := make([]durations, len(s))
	group, ctx := errgroup.WithContext(ctx)
	for i, once := range s {
		group.Go(func() error { return each[i].measure(ctx, once, times) })
	}
	err := group.Wait()
	var all durations
	for _, d := range each {
		all.add(d)
	}
	return all, err
}

func (d *durations) measure(ctx context.Context, once cycle, times int) error {
	for range times {
		began := time.Now()
		taken, err := once(ctx)
		if err != nil {
			return err
		}
		if took := time.Since(began); taken {
			d.taken = append(d.taken, took)
		} else {
			d.refused = append(d.refused, took)
		}
	}
	return nil
}

func milliseconds(d time.Duration) number { return decimal(millis(d), 2) }
