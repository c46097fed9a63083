package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
)

// The contest, alike on both sides: nodes, threads of each, and how a lock is
// used. The TTL is much longer than a busy machine stands still, and yet ends
// often enough within a minute.
const (
	nodes        = 3
	threads      = 3
	ttl          = 6 * time.Second
	hold         = 20 * time.Millisecond
	wait         = 2 * time.Second
	longEvery    = 500
	abandonEvery = 250
)

// summary is what Java counts.
type summary struct {
	Version     string
	Acquired    int64
	Refused     int64
	Abandoned   int64
	Renewed     int64
	Lost        int64
	Failed      int64
	LastFailure string `json:"last_failure"`
}

// tally is what our side counts.
type tally struct {
	acquired, refused, abandoned, long, lost atomic.Int64
}

// contention is Java's side of a contest.
type contention struct {
	names []string
	// keys is how its locks are made of the names.
	keys string
	// hold and pause are the longest times under a lock and between two.
	time, hold, pause time.Duration
	// Once in so many rounds a lock is held beyond its TTL, or abandoned; 0 is
	// never.
	longEvery, abandonEvery int
	threads                 int
}

func (t *trial) contend(ctx context.Context, c contention) (*process, error) {
	args := append([]string{"contend", "url=" + t.jdbc, "locks=" + strings.Join(c.names, ","), "keys=" + c.keys}, t.store...)
	for name, value := range map[string]int64{
		"nodes": nodes, "threads": int64(c.threads), "seed": t.settings.seed, "time": c.time.Milliseconds(), "ttl": ttl.Milliseconds(),
		"hold": c.hold.Milliseconds(), "pause": c.pause.Milliseconds(), "wait": wait.Milliseconds(),
		"long-every": int64(c.longEvery), "abandon-every": int64(c.abandonEvery),
	} {
		args = append(args, fmt.Sprintf("%s=%d", name, value))
	}
	p, err := t.java.start(ctx, args...)
	if err != nil {
		return nil, err
	}
	return p, p.ready()
}

// side is ours.
type side struct {
	names []string
	// request is that of a lock by its name.
	request func(name string) lock.Request
	// open returns the provider of a node of its own, and what closes it.
	open func(ctx context.Context) (lock.Provider, io.Closer, error)
	// shares lets it share every other lock.
	shares bool
}

// keysOf is how Java makes its keys in the table.
func keysOf(format lockdb.KeyFormat) string {
	if format == lockdb.KeyPlain {
		return "plain"
	}
	return "hashed"
}

// rows lets both sides contend for rows of INT_LOCK. With shares, ours share every other one.
func (t *trial) rows(ctx context.Context, format lockdb.KeyFormat, shares bool, d time.Duration) error {
	ours := side{
		names: contested(format), shares: shares,
		request: func(name string) lock.Request {
			return lock.Request{Key: lockdb.Key(format, name), Region: "DEFAULT", TTL: ttl, Name: name}
		},
		open: func(ctx context.Context) (lock.Provider, io.Closer, error) {
			db, err := t.node(ctx)
			if err != nil || !shares {
				return db.Leases(), db, err
			}
			return database.On(db, slog.New(slog.DiscardHandler)), db, nil
		},
	}
	return t.contest(ctx, keysOf(format), string(format)+" keys", ours, d)
}

// contest lets both sides contend for the locks.
func (t *trial) contest(ctx context.Context, keys, title string, side side, d time.Duration) error {
	if err := t.witness.clear(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d+5*time.Minute)
	defer cancel()
	p, err := t.contend(ctx, contention{
		names: side.names, keys: keys, time: d, hold: hold, longEvery: longEvery, abandonEvery: abandonEvery, threads: threads,
	})
	if err != nil {
		return err
	}
	ours, err := t.ours(ctx, side, time.Now().Add(d))
	var java summary
	if err := errors.Join(p.end(&java), err); err != nil {
		return err
	}
	s, err := t.witness.testify(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s, %s%s, %s: overlaps %d; sections %d of Java, %d of ours, handovers %d; fences that went back %d\n",
		t.name(), title, map[bool]string{true: ", shared by ours"}[side.shares], d.Round(time.Second), s.overlaps+s.crossings+s.lost, s.java, s.ours, s.handovers, s.regressions)
	fmt.Fprintf(t.out, "  Java: %s\n", java)
	fmt.Fprintf(t.out, "  ours: acquired %d, refused %d, abandoned %d, held beyond the TTL %d, lost %d\n",
		ours.acquired.Load(), ours.refused.Load(), ours.abandoned.Load(), ours.long.Load(), ours.lost.Load())
	if !side.shares {
		return errors.Join(java.verdict(), s.verdict())
	}
	fmt.Fprintf(t.out, "  readers: %d sections, %d of them beside another reader, %d beside one who had the lock alone\n", s.readers, s.shared, s.disturbed)
	if s.shared < 20 {
		err = fmt.Errorf("readers have hardly met: %d of %d", s.shared, s.readers)
	}
	return errors.Join(java.verdict(), s.verdict(), err)
}

// String lists the counts.
func (s summary) String() string {
	return fmt.Sprintf("acquired %d, refused %d, abandoned %d, renewals %d, unlocks of a lost lock %d, errors %d",
		s.Acquired, s.Refused, s.Abandoned, s.Renewed, s.Lost, s.Failed)
}

func (s summary) verdict() error {
	if s.Failed > 0 {
		return fmt.Errorf("a thread of Java met %d errors, at last: %s", s.Failed, s.LastFailure)
	}
	return nil
}

// contested leaves out the names that are too long to be plain keys, in bytes.
func contested(format lockdb.KeyFormat) (names []string) {
	for _, name := range locks {
		if format == lockdb.KeySpring && name == "1-1-1-1-1" {
			continue // Spring 5 and the others hash it to different keys.
		}
		names = append(names, name)
	}
	return names
}

// ours runs our side until the end.
func (t *trial) ours(ctx context.Context, side side, end time.Time) (*tally, error) {
	counts := &tally{}
	var mu sync.Mutex
	var errs []error
	var work sync.WaitGroup
	for n := range nodes {
		provider, closer, err := side.open(ctx)
		if err != nil {
			return counts, err
		}
		keeper := lock.NewKeeper(lock.KeeperOptions{Provider: provider})
		work.Go(func() {
			var threadsOf sync.WaitGroup
			for i := range threads {
				c := &contender{
					side: side, witness: t.witness, provider: provider, keeper: keeper, tally: counts,
					holder: fmt.Sprintf("ours-%d-%d", n, i), random: rand.New(rand.NewPCG(uint64(t.settings.seed), uint64(n*threads+i))), //nolint:gosec // A seed.
				}
				threadsOf.Go(func() {
					if err := c.run(ctx, end); err != nil {
						mu.Lock()
						defer mu.Unlock()
						errs = append(errs, fmt.Errorf("%s: %w", c.holder, err))
					}
				})
			}
			threadsOf.Wait()
			err := errors.Join(keeper.Close(context.WithoutCancel(ctx)), closer.Close())
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	work.Wait()
	return counts, errors.Join(errs...)
}
