package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

const (
	goalDescriptor = 1.05
	goalGeneral    = 1.05
	generalGroup   = "General locks: acquire and release on PostgreSQL"
)

// generalModes are compared with the pollers' lock.
func generalModes() []locks.Mode {
	return []locks.Mode{locks.Exclusive, locks.Shared, locks.Intent, locks.IntentExclusive}
}

// generals are managers, each of them as a process of its own has it, beside the
// connections of the bare statements.
type generals struct {
	*lockers

	managers []*locks.Manager
	// providers are those of the managers: plain keys have the same connections, so that what
	// differs is the way alone.
	providers []locks.Provider
	// keepers hold the pollers' locks, as a node does, on connections of their own.
	keepers []*lock.Keeper
}

func measureGeneralLocks(ctx context.Context, s *suite) (figures []figure, err error) {
	where, err := s.cluster.coordination(ctx, "general")
	if err != nil {
		return nil, err
	}
	g, err := openGenerals(ctx, where)
	if err != nil {
		return nil, err
	}
	for _, n := range []int{1, crowd} {
		f, err := g.compare(ctx, s, n)
		if err != nil {
			return nil, errors.Join(err, g.close(ctx))
		}
		figures = append(figures, f...)
	}
	if err := g.close(ctx); err != nil {
		return nil, err
	}
	crowds, err := measureCrowds(ctx, s)
	if err != nil {
		return nil, err
	}
	held, err := measureHeld(ctx, s)
	return append(append(figures, crowds...), held...), err
}

func openGenerals(ctx context.Context, where string) (*generals, error) {
	l, err := openLockers(ctx, where)
	if err != nil {
		return nil, err
	}
	g := &generals{lockers: l}
	for i := range crowd {
		m, p, err := openManager(ctx, where)
		if err != nil {
			return nil, errors.Join(err, g.close(ctx))
		}
		g.managers, g.providers = append(g.managers, m), append(g.providers, p)
		g.keepers = append(g.keepers, lock.NewKeeper(lock.KeeperOptions{Provider: l.nodes[i].Leases()}))
	}
	return g, nil
}

// openManager opens a manager and its provider as another program does.
func openManager(ctx context.Context, where string) (*locks.Manager, locks.Provider, error) {
	p, err := database.Open(ctx, where, database.Options{})
	if err != nil {
		return nil, nil, err
	}
	m, err := locks.Open(ctx, locks.Options{Provider: p, Node: "bench"})
	return m, p, err
}

func (g *generals) close(ctx context.Context) error {
	var errs []error
	for _, k := range g.keepers {
		errs = append(errs, k.Close(ctx))
	}
	for _, m := range g.managers { // They close their providers.
		errs = append(errs, m.Close(ctx))
	}
	return errors.Join(append(errs, g.closeAll())...)
}

func descriptor(mode locks.Mode, ttl time.Duration, i int) locks.Descriptor {
	return locks.Descriptor{Subject: "fileset", Predicate: "processing", Resources: []string{key(i)}, Mode: mode, TTL: ttl}
}

// generalLap is one round of the comparison, by the median cycle of each side.
type generalLap struct {
	bare, plain, pollers time.Duration
	modes                map[locks.Mode]time.Duration
	// set is that of setSize locks that are acquired at once.
	set time.Duration
}

// setSize is how many locks are acquired at once.
const setSize = 3

// lapsPerRound makes laps short, and many: what they are compared for is less than a disk's
// commits differ from one second to the next.
const lapsPerRound = 10

// compare lets n connections lock n keys, in each of the ways in turn.
func (g *generals) compare(ctx context.Context, s *suite, n int) ([]figure, error) {
	// One lap more than is counted: the first one prepares the statements.
	var laps []generalLap
	for range s.rounds*lapsPerRound + 1 {
		l, err := g.lap(ctx, n, s.lockCycles/lapsPerRound)
		if err != nil {
			return nil, err
		}
		laps = append(laps, l)
	}
	figures := generalFigures(laps[1:], n)
	for _, f := range figures {
		s.progress("general-locks: %s: %s, %s", f.what, f.value, f.beside)
	}
	return figures, nil
}

func (g *generals) lap(ctx context.Context, n, times int) (generalLap, error) {
	l := generalLap{modes: map[locks.Mode]time.Duration{}}
	cycles := func(what string, one side) (time.Duration, error) {
		took, err := together(ctx, one, times)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
		return median(took.taken), nil
	}
	var err error
	if l.bare, err = cycles("the bare statements", g.bare(n)); err != nil {
		return l, err
	}
	if l.plain, err = cycles("the plain keys", g.plainKeys(n)); err != nil {
		return l, err
	}
	if l.pollers, err = cycles("the pollers' locks", g.pollers(n)); err != nil {
		return l, err
	}
	for _, mode := range generalModes() {
		if l.modes[mode], err = cycles("the descriptors", g.described(n, mode)); err != nil {
			return l, err
		}
	}
	l.set, err = cycles("the sets", g.sets(n))
	return l, err
}

// plainKeys are locks without a descriptor, from the provider alone.
func (g *generals) plainKeys(n int) side {
	s := make(side, n)
	for i := range s {
		s[i] = leaseCycle(g.providers[i], key(i))
	}
	return s
}

// pollers lock plain keys as a node's scheduler does.
func (g *generals) pollers(n int) side {
	s := make(side, n)
	for i := range s {
		keeper, wanted := g.keepers[i], request(key(i))
		s[i] = func(ctx context.Context) (bool, error) {
			l, err := keeper.Acquire(ctx, wanted)
			if err != nil {
				return false, err
			}
			return true, l.Release(ctx)
		}
	}
	return s
}

// described are locks by descriptor.
func (g *generals) described(n int, mode locks.Mode) side {
	s := make(side, n)
	for i := range s {
		manager, wanted := g.managers[i], descriptor(mode, time.Minute, i)
		s[i] = func(ctx context.Context) (bool, error) {
			l, err := manager.Acquire(ctx, wanted, locks.FailFast())
			if err != nil {
				return false, err
			}
			return true, l.Release(ctx)
		}
	}
	return s
}

// sets are several locks that are acquired at once.
func (g *generals) sets(n int) side {
	s := make(side, n)
	for i := range s {
		manager, wanted := g.managers[i], make([]locks.Descriptor, setSize)
		for j := range wanted {
			wanted[j] = descriptor(locks.Exclusive, time.Minute, setSize*i+j)
		}
		s[i] = func(ctx context.Context) (bool, error) {
			all, err := manager.AcquireAll(ctx, wanted, locks.FailFast())
			if err != nil {
				return false, err
			}
			return true, all.Release(ctx)
		}
	}
	return s
}

func generalFigures(laps []generalLap, n int) []figure {
	connections := "1 connection"
	if n > 1 {
		connections = fmt.Sprintf("%d connections with a key each", n)
	}
	over := func(ours, theirs func(generalLap) time.Duration) float64 {
		return medianOf(laps, func(l generalLap) float64 { return float64(ours(l)) / float64(theirs(l)) })
	}
	bare := func(l generalLap) time.Duration { return l.bare }
	plain := func(l generalLap) time.Duration { return l.plain }
	pollers := func(l generalLap) time.Duration { return l.pollers }
	one := func(what string, ours func(generalLap) time.Duration) figure {
		return figure{
			group: generalGroup, what: fmt.Sprintf("p50, %s, %s", what, connections),
			value:  say("%s ms, %s times the bare statements", milliseconds(medianOf(laps, ours)), decimal(over(ours, bare), 2)),
			beside: say("bare INSERT + DELETE %s ms", milliseconds(medianOf(laps, bare))),
		}
	}
	figures := []figure{one("plain key", plain), one("the pollers' lock", pollers)}
	for _, mode := range generalModes() {
		ours := func(l generalLap) time.Duration { return l.modes[mode] }
		figures = append(figures, one("by descriptor, "+string(mode), ours))
		if mode != locks.Exclusive {
			continue
		}
		toPlain, toPollers := over(ours, plain), over(ours, pollers)
		figures = append(figures, figure{
			group: generalGroup, what: "exclusive by descriptor to a plain key, " + connections,
			value:  say("%s times", decimal(toPlain, 2)),
			beside: say("plain key %s ms", milliseconds(medianOf(laps, plain))),
			goal:   "at most 1.05 times", met: []bool{toPlain <= goalDescriptor},
		}, figure{
			group: generalGroup, what: "exclusive by descriptor to the pollers' lock, " + connections,
			value:  say("%s times", decimal(toPollers, 2)),
			beside: say("pollers' lock %s ms", milliseconds(medianOf(laps, pollers))),
			goal:   "within 5%", met: []bool{toPollers <= goalGeneral},
		})
	}
	return append(figures, one(fmt.Sprintf("a set of %d by descriptor, exclusive", setSize), func(l generalLap) time.Duration { return l.set }))
}
