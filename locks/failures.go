package locks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

const (
	// noteEvery is how often failures are written that were counted.
	noteEvery = 10 * time.Second
	// noteTimeout limits that, and lastNoteTimeout the last time, which the end of a process
	// waits for.
	noteTimeout     = 2 * time.Second
	lastNoteTimeout = 500 * time.Millisecond
	// mostFailures is of how many locks they are counted meanwhile.
	mostFailures = 1000
)

// failures counts acquisitions that failed because another had the lock, and writes the
// counts now and then to the provider's log, for people.
type failures struct {
	provider lock.FailureLog // nil where there is none
	region   string
	log      *slog.Logger
	closed   context.Context // ends when the manager is closed
	shut     context.CancelFunc
	done     sync.WaitGroup

	mu     sync.Mutex
	counts map[failed]int64
	// dropped counts those of locks that are too many.
	dropped          int64
	running, closing bool
}

// failed is a lock, and what the caller wanted to do.
type failed struct{ key, subject, predicate string }

func newFailures(provider lock.FailureLog, o Options) *failures {
	f := &failures{provider: provider, region: o.Region, log: o.Logger, counts: make(map[failed]int64)}
	f.closed, f.shut = context.WithCancel(context.Background())
	return f
}

// count counts a call that ended with the error, if another had the lock.
func (f *failures) count(err error) {
	held, ok := errors.AsType[*HeldError](err)
	if f.provider == nil || !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addLocked(failed{held.Lock.Key(), held.Lock.Subject, held.Lock.Predicate}, 1)
	if !f.running && !f.closing {
		f.running = true
		f.done.Go(f.run)
	}
}

func (f *failures) addLocked(of failed, n int64) {
	if _, known := f.counts[of]; !known && len(f.counts) >= mostFailures {
		f.dropped += n
		return
	}
	f.counts[of] += n
}

// run writes what was counted until nothing was, or the manager is closed.
func (f *failures) run() {
	for wait.For(f.closed, noteEvery) {
		counts := f.take()
		if counts == nil {
			return
		}
		f.note(f.closed, noteTimeout, counts)
	}
	f.note(context.Background(), lastNoteTimeout, f.take())
}

// take returns what was counted since the last time; nil, and nothing is running any more,
// when nothing was.
func (f *failures) take() map[failed]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped > 0 {
		f.log.Debug("Failed acquisitions of many locks; some were not noted", "not_noted", f.dropped)
		f.dropped = 0
	}
	f.running = len(f.counts) > 0
	if !f.running {
		return nil
	}
	counts := f.counts
	f.counts = make(map[failed]int64)
	return counts
}

// note writes the counts. Those that could not be written are kept for the next time.
func (f *failures) note(ctx context.Context, limit time.Duration, counts map[failed]int64) {
	if len(counts) == 0 {
		return
	}
	all := make([]lock.Failure, 0, len(counts))
	for of, n := range counts {
		all = append(all, lock.Failure{Region: f.region, Key: of.key, Subject: of.subject, Predicate: of.predicate, Count: n})
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f.provider.NoteFailures(ctx, all)
	if err == nil {
		return
	}
	f.log.Debug("Failed acquisitions not noted", "err", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	for of, n := range counts {
		f.addLocked(of, n)
	}
}

// close tries to write what was counted, and waits until nothing runs. What it cannot write
// is lost: no lock depends on it.
func (f *failures) close() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	f.shut()
	f.done.Wait()
}
