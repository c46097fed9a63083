//go:build nightly

package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// stalls notes when the machine stood still: when a moment of sleep or a small
// write to the disk took much longer than it should. Tests share two cores and
// one disk with others; a node that is late because of that is not unfair.
type stalls struct {
	mu   sync.Mutex
	from []time.Time
	to   []time.Time
}

// stallTick is the distance of looks, stallFrom what counts as a stall: a good
// part of the patience that one node has with another.
const (
	stallTick = 20 * time.Millisecond
	stallFrom = 80 * time.Millisecond
)

// watchStalls looks until the test ends.
func watchStalls(t *testing.T) *stalls {
	t.Helper()
	s := &stalls{}
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, file) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
		_ = file.Close()
	})
	return s
}

func (s *stalls) watch(ctx context.Context, file *os.File) {
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stallTick):
		}
		_, _ = file.WriteAt([]byte("x"), 0) // Only the time that it takes matters.
		_ = file.Sync()
		if now := time.Now(); now.Sub(last) > stallFrom {
			s.mu.Lock()
			s.from, s.to = append(s.from, last), append(s.to, now)
			s.mu.Unlock()
		}
	}
}

// longest is the longest stall so far.
func (s *stalls) longest() (most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.from {
		most = max(most, s.to[i].Sub(s.from[i]))
	}
	return most
}

// during reports whether the machine stood still while the turn of that tick
// (milliseconds since 1970) was taken.
func (s *stalls) during(at int64) bool {
	begin := time.UnixMilli(at).Add(-interval / 4)
	end := time.UnixMilli(at).Add(interval / 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.from {
		if s.from[i].Before(end) && s.to[i].After(begin) {
			return true
		}
	}
	return false
}
