// Command holder is a program that uses the public package locks as any other would, and is
// tortured: it holds a few locks, in each mode, in sets and with intents on what is above
// them, extends some, and writes a row for each of them in transactions of the coordination
// database that they guard, and others without a guard for as long as it trusts its leases. A
// checker judges the rows.
// What it does follows from its environment: HOLDER_DATABASE is a URL, HOLDER_UNGUARDED that of
// the same database on a way that nobody cuts, HOLDER_NODE its name,
// and HOLDER_TTL the TTL of its locks. It ends in order on SIGTERM.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		os.Exit(1)
	}
}

// workers is how many locks, or sets of them, the program holds at a time.
const workers = 3

// limit bounds each transaction, and what the server waits for one that is left alone.
const limit = 5 * time.Second

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	h := holder{node: os.Getenv("HOLDER_NODE")}
	url := os.Getenv("HOLDER_DATABASE")
	var err error
	if h.ttl, err = time.ParseDuration(os.Getenv("HOLDER_TTL")); err != nil {
		return err
	}
	if h.book, err = openBook(url); err != nil {
		return err
	}
	defer h.db.Close()
	if h.unguarded, err = openBook(os.Getenv("HOLDER_UNGUARDED")); err != nil {
		return err
	}
	defer h.unguarded.db.Close()
	for h.locks == nil {
		if h.locks, err = h.open(ctx, url); err != nil && !rest(ctx, 200*time.Millisecond) {
			return nil // It was told to end before it could begin.
		}
	}
	var work sync.WaitGroup
	for range workers {
		work.Go(func() { h.work(ctx) })
	}
	work.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*limit)
	defer cancel()
	return h.locks.Close(closing)
}

// holder is the state of the program.
type holder struct {
	node string
	ttl  time.Duration
	book
	unguarded book
	locks     *locks.Manager
}

func (h *holder) open(ctx context.Context, url string) (*locks.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*limit)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	p, err := database.Open(ctx, url, database.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	return locks.Open(ctx, locks.Options{Provider: p, Node: h.node, Logger: log})
}

// rest lets time pass; false when ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// work holds locks, one after the other, until ctx ends.
func (h *holder) work(ctx context.Context) {
	for ctx.Err() == nil {
		leases, err := h.acquire(ctx)
		if err != nil {
			rest(ctx, 100*time.Millisecond)
			continue
		}
		h.hold(ctx, leases)
	}
}

// acquire takes one lock, or both schemas, in any order and mode.
func (h *holder) acquire(ctx context.Context) (locks.Leases, error) {
	ds := []locks.Descriptor{h.lock("schema", "torture", "1"), h.lock("schema", "torture", "2")}
	rand.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
	options := []locks.Option{locks.Within(limit)}
	// What is acquired as the program is told to end is held, and released.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	switch rand.IntN(6) {
	case 0, 1:
		return h.locks.AcquireAll(waiting, ds, options...)
	case 2:
		ds[0] = h.lock("fileset", "torture")
	case 3:
		ds[0] = h.lock("page", "torture", "1")
		ds[0].Mode = locks.Exclusive
		options = append(options, locks.WithIntents())
	}
	l, err := h.locks.Acquire(waiting, ds[0], options...)
	return locks.Leases{l}, err
}

// modes are those in which a lock is taken: exclusive twice as often as each other one.
var modes = []locks.Mode{locks.Exclusive, locks.Exclusive, locks.Shared, locks.Intent, locks.IntentExclusive}

func (h *holder) lock(subject string, resources ...string) locks.Descriptor {
	return locks.Descriptor{Subject: subject, Predicate: "writing", Resources: resources, TTL: h.ttl, Mode: modes[rand.IntN(len(modes))]}
}

// longer is by how much a lease is extended. It is renewed so seldom then that the TTL of
// before would be over, and the shortest of them is in a pause.
const longer = 4

// hold writes under the locks a few times, also when their contexts have ended: the guard
// alone is to refuse it then. That it is about to release them is there before it does.
func (h *holder) hold(ctx context.Context, leases locks.Leases) {
	// All that is written without a guard is there before the program leaves.
	unguarded, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { h.trust(unguarded, leases) })
	h.writeSome(ctx, leases)
	stop()
	beside.Wait()
	for h.leave(ctx, leases) != nil {
		rest(context.WithoutCancel(ctx), 100*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*limit)
	defer cancel()
	_ = leases.Release(ctx) // What is not released ends with its TTL.
}

// trust writes without a guard for as long as the leases are trusted.
func (h *holder) trust(ctx context.Context, leases locks.Leases) {
	for rest(ctx, 200*time.Millisecond) {
		_ = h.unguarded.inTx(ctx, func(ctx context.Context, tx *sql.Tx, began string) error {
			for _, l := range leases {
				if l.Context().Err() != nil {
					return context.Cause(l.Context())
				}
			}
			return h.enter(ctx, tx, leases, bare, began)
		})
	}
}

// writeSome writes a few times under the guard.
func (h *holder) writeSome(ctx context.Context, leases locks.Leases) {
	for range 1 + rand.IntN(5) {
		pause := rand.N(200 * time.Millisecond)
		switch n := rand.IntN(16); {
		case n < 4:
			pause = min(h.ttl*3/10, 3*time.Second)
		case n == 4: // Seldom: one that sleeps is to lose its lock.
			h.extend(ctx, leases)
			pause = min(h.ttl*5/4, 3*time.Second)
		}
		if err := h.write(ctx, leases); errors.Is(err, locks.ErrFenced) {
			return
		}
		if !rest(ctx, pause) {
			return
		}
	}
}

// extend lets the leases live for longer. One that was not extended is written with its own
// TTL.
func (h *holder) extend(ctx context.Context, leases locks.Leases) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, l := range leases {
		_ = l.Extend(ctx, longer*h.ttl)
	}
}

// The kinds of rows, as package history has them.
const (
	wrote = "write"
	bare  = "bare"
	left  = "leave"
)

// write writes a row for each lock, in one transaction under the guard of all. All who guard
// by several locks do it in one order, or they might wait for each other.
func (h *holder) write(ctx context.Context, leases locks.Leases) error {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b *locks.Lease) int {
		return cmp.Compare(a.Descriptor().Key(), b.Descriptor().Key())
	})
	return h.inTx(ctx, func(ctx context.Context, tx *sql.Tx, began string) error {
		for _, l := range leases {
			if err := l.Guard(ctx, tx); err != nil {
				return err
			}
		}
		return h.enter(ctx, tx, leases, wrote, began)
	})
}

// leave notes that the program wants the locks no more, whether it has them or not.
func (h *holder) leave(ctx context.Context, leases locks.Leases) error {
	return h.inTx(ctx, func(ctx context.Context, tx *sql.Tx, began string) error {
		return h.enter(ctx, tx, leases, left, began)
	})
}

// enter writes a row for each lock. One that was taken with intents stands for them too,
// whatever package locks has made of them.
func (h *holder) enter(ctx context.Context, tx *sql.Tx, leases locks.Leases, kind, began string) error {
	for _, l := range leases {
		held := []locks.Descriptor{l.Descriptor()}
		if held[0].Subject == "page" {
			held = append(held, locks.Descriptor{Subject: "fileset", Resources: held[0].Resources[:1], Mode: locks.IntentExclusive})
		}
		for _, d := range held {
			_, err := tx.ExecContext(ctx, h.insert, d.Key(), string(d.Mode), l.Term(), l.Fence(), h.node, l.TTL().Milliseconds(), kind,
				l.Context().Err() == nil, began)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
