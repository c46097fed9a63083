package goora_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest"
)

// However a statement's end and its cancellation meet, nobody gets another's
// answer, and a statement that was not cancelled does not fail.
func TestCancelRace(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	right(t, db)
	usual := measure(func() { right(t, db) }) / 3
	s.On(oratest.SQL("SOMETIMES"), oratest.Fault{Delay: usual})
	var work sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for worker := range 4 {
		work.Go(func() {
			random, when := rand.New(rand.NewPCG(1, uint64(worker))), moment(usual)
			for i := range 150 {
				outcome := cancelled(t, db, fmt.Sprintf("SELECT %d of %d", i, worker), &when, random)
				mu.Lock()
				outcomes[outcome]++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if outcomes["answered"] == 0 || outcomes["cancelled"] == 0 || outcomes["calm"] == 0 || s.Breaks() == 0 {
		t.Error(outcomes, s.Breaks())
	}
	t.Log(outcomes, s.Logons(), "logons,", s.Breaks(), "breaks, usual", usual)
}

// measure returns the least of what some work has taken.
func measure(work func()) time.Duration {
	least := soon
	for range 5 {
		begun := time.Now()
		work()
		least = min(least, time.Since(begun))
	}
	return least
}

// moment is when contexts end, on average. It follows what the machine has time
// for, so that about half of them end before the answer comes.
type moment time.Duration

// after draws a time.
func (m *moment) after(random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(2 * int64(*m)))
}

func (m *moment) answered() { *m = max(*m*9/10, moment(time.Microsecond)) }

func (m *moment) missed() { *m = min(*m*10/9+1, moment(soon/4)) }

// cancelled asks a query whose context ends at some moment near its answer.
func cancelled(t *testing.T, db *sql.DB, query string, when *moment, random *rand.Rand) string {
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Error(err)
		return "failed"
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	calm := random.IntN(3) == 0
	if random.IntN(2) == 0 {
		query += " SOMETIMES"
	}
	if !calm {
		timer := time.AfterFunc(when.after(random), cancel)
		defer timer.Stop()
	}
	got, err := ask(ctx, conn, query)
	switch {
	case err == nil && got != query:
		t.Errorf("asked %q, got %q", query, got)
	case err == nil && calm:
		return "calm"
	case err == nil:
		when.answered()
		return "answered"
	case calm || !errors.Is(err, context.Canceled):
		t.Errorf("%s: %v", query, err)
	}
	when.missed()
	return "cancelled"
}

// Results are cancelled while they are fetched: those that come out whole are.
func TestCancelRaceInFetches(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	when := moment(measure(func() { _, _ = read(t.Context(), db, "SELECT ROWS 60") }))
	random := rand.New(rand.NewPCG(2, 2))
	whole := 0
	for range 100 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(when.after(random), cancel)
		n, err := read(ctx, conn, "SELECT ROWS 60")
		timer.Stop()
		cancel()
		if err == nil && n == 60 {
			whole++
			when.answered()
		} else {
			when.missed()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%d rows, %v", n, err)
			}
		}
		_ = conn.Close()
	}
	if whole == 0 || whole == 100 {
		t.Errorf("%d of 100 were whole", whole)
	}
	right(t, db)
}
