package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/test/kit/testbed"
)

// The writers of the late commits.
const (
	lateWriterCount = 4
	shareEarly      = 0.30 // begin long before they write
	shareSlow       = 0.25 // commit long after they have written
	shareRollback   = 0.10
	shareUpdate     = 0.50 // change a row that is there, besides writing one
)

// lateWriters write new rows and change old ones, each status only once.
type lateWriters struct {
	origin

	mu        sync.Mutex
	rows      int64
	known     []int64
	committed map[string]lateVersion // by status
}

// lateVersion is a row's version that was committed.
type lateVersion struct {
	at time.Time // when the writer saw its commit
	// late says that it had a timestamp long before.
	late bool
}

func newLateWriters(o origin) *lateWriters {
	return &lateWriters{origin: o, committed: map[string]lateVersion{}}
}

// write lets all writers write for that long, and end what they have begun.
func (w *lateWriters) write(ctx context.Context, long time.Duration) error {
	ends := time.Now().Add(long)
	tasks, ctx := errgroup.WithContext(ctx)
	for n := range lateWriterCount {
		tasks.Go(func() error {
			s, err := w.session(ctx)
			if err != nil {
				return fmt.Errorf("connect as a writer: %w", err)
			}
			defer s.close()
			one := &lateWriter{lateWriters: w, session: s, random: rand.New(rand.NewPCG(uint64(n), 0)), n: n}
			for time.Now().Before(ends) {
				if err := one.transaction(ctx); err != nil {
					return fmt.Errorf("write: %w", err)
				}
				if err := one.pause(ctx, 1, 10); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return tasks.Wait()
}

// lateWriter is one of them.
type lateWriter struct {
	*lateWriters
	session session
	random  *rand.Rand
	n, done int
}

// transaction writes one row, and perhaps changes another. The new row comes
// first, so that nobody who waits for a row has one that others wait for, too.
func (w *lateWriter) transaction(ctx context.Context) error {
	early, slow := w.random.Float64() < shareEarly, w.random.Float64() < shareSlow
	if err := w.begin(ctx, early); err != nil {
		return err
	}
	w.done++
	statuses := []string{fmt.Sprintf("new %d-%d", w.n, w.done)}
	id, old := w.rowsToWrite()
	now := w.dialect().now
	err := w.session.exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, 'c', '%s', 1, 'n', %s)", lateTable, id, statuses[0], now))
	if err == nil && old != 0 {
		statuses = append(statuses, fmt.Sprintf("changed %d-%d", w.n, w.done))
		err = w.session.exec(ctx, fmt.Sprintf("UPDATE %s SET status = '%s', updated_at = %s WHERE id = %d", lateTable, statuses[1], now, old))
	}
	if err != nil {
		return err
	}
	if slow {
		if err := w.pause(ctx, 5, 150); err != nil {
			return err
		}
	}
	return w.end(ctx, id, statuses, early || slow)
}

// begin begins a transaction, early ones long before anything is written.
func (w *lateWriter) begin(ctx context.Context, early bool) error {
	if begin := w.dialect().begin; begin != "" {
		if err := w.session.exec(ctx, begin); err != nil {
			return err
		}
	}
	if !early {
		return nil
	}
	return w.pause(ctx, 5, 150)
}

// end commits, but for a few.
func (w *lateWriter) end(ctx context.Context, id int64, statuses []string, late bool) error {
	if w.random.Float64() < shareRollback {
		return w.session.exec(ctx, "ROLLBACK")
	}
	if err := w.session.exec(ctx, "COMMIT"); err != nil {
		return err
	}
	at := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = append(w.known, id)
	for _, status := range statuses {
		w.committed[status] = lateVersion{at, late}
	}
	return nil
}

// rowsToWrite are a new row and one that is there; 0 for none.
func (w *lateWriter) rowsToWrite() (id, old int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows++
	if len(w.known) > 0 && w.random.Float64() < shareUpdate {
		old = w.known[w.random.IntN(len(w.known))]
	}
	return w.rows, old
}

// pause waits between so many milliseconds.
func (w *lateWriter) pause(ctx context.Context, least, most int) error {
	return testbed.Wait(ctx, time.Duration(least+w.random.IntN(most-least))*time.Millisecond)
}
