package source

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errLocked = errors.New("locked")

func isLocked(err error) bool { return errors.Is(err, errLocked) }

func TestRetry(t *testing.T) {
	t.Parallel()
	free, other := errors.New("free"), errors.New("other")
	for name, tc := range map[string]struct {
		after time.Duration // until the lock is gone
		then  error
		tries []time.Duration
		want  error
	}{
		"never locked":    {0, nil, []time.Duration{0}, nil},
		"another failure": {0, other, []time.Duration{0}, other},
		"for a while":     {3 * time.Second, nil, []time.Duration{0, 2 * time.Second, 5 * time.Second}, nil},
		"and then fails":  {3 * time.Second, free, []time.Duration{0, 2 * time.Second, 5 * time.Second}, free},
		"for too long": {time.Hour, nil, []time.Duration{
			0, 2 * time.Second, 5 * time.Second, 10 * time.Second, 16 * time.Second, 22 * time.Second, 28 * time.Second,
		}, errLocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var tries []time.Duration
				err := NewLockWaits(4, 30*time.Second, isLocked).Retry(t.Context(), func() error {
					tries = append(tries, time.Since(began))
					if time.Since(began) < tc.after {
						time.Sleep(time.Second)
						return errLocked
					}
					return tc.then
				})
				if !errors.Is(err, tc.want) || !slices.Equal(tries, tc.tries) {
					t.Errorf("%v after tries at %v, want %v at %v", err, tries, tc.want, tc.tries)
				}
				if took := time.Since(began); took > 31*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A try that had to wait for a connection has not seen the lock for all that
// time.
func TestRetryIsNotImpatientAfterAnotherWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := NewLockWaits(4, 30*time.Second, isLocked).Retry(t.Context(), func() error {
			if tries++; tries == 1 {
				time.Sleep(time.Minute)
				return errLocked
			}
			return nil
		})
		if err != nil || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

func TestRetryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("the lease was lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(lost) })
		began := time.Now()
		err := NewLockWaits(4, time.Minute, isLocked).Retry(ctx, func() error { return errLocked })
		if !errors.Is(err, lost) || time.Since(began) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// Those who come back to a lock leave connections to those whose tables are free.
func TestLocksCostHalfOfTheConnections(t *testing.T) {
	t.Parallel()
	for poolSize, most := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 8: 4} {
		synctest.Test(t, func(t *testing.T) {
			w := NewLockWaits(poolSize, 30*time.Second, isLocked)
			const readers = 20
			var mu sync.Mutex // of what follows
			first, again, at, highest := 0, 0, 0, 0
			for range readers {
				go func() {
					tried := false
					err := w.Retry(t.Context(), func() error {
						if !tried {
							tried = true
							first++
							return errLocked
						}
						mu.Lock()
						again++
						at++
						highest = max(highest, at)
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						at--
						mu.Unlock()
						return errLocked
					})
					if !isLocked(err) {
						t.Errorf("Retry = %v", err)
					}
				}()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if first != readers || highest != most || again < most {
				t.Errorf("pool of %d: %d first tries, %d others, %d of these at once, want %d, some and %d", poolSize, first, again, highest, readers, most)
			}
			if len(w.returning) != 0 {
				t.Errorf("%d connections are not given back", len(w.returning))
			}
		})
	}
}

// What found no room to try again has not found the table free.
func TestRetryEndsWithTheTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewLockWaits(1, 30*time.Second, isLocked)
		w.returning <- struct{}{}
		other, tries := errors.New("other"), 0
		time.AfterFunc(10*time.Second, func() { <-w.returning })
		err := w.Retry(t.Context(), func() error {
			if tries++; tries == 1 {
				return errLocked
			}
			return other
		})
		if !errors.Is(err, other) || tries != 2 || len(w.returning) != 0 {
			t.Errorf("Retry = %v after %d tries, %d not given back", err, tries, len(w.returning))
		}
	})
}
