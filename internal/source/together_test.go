package source_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// desk answers each question after a second with its number, and notes the keys of each.
type desk struct {
	*source.Together[string, int]
	asked  [][]string
	failed error
}

func (d *desk) ask(ctx context.Context, key string) (int, error) {
	return d.Ask(ctx, key, func(ctx context.Context, keys []string) (int, error) {
		d.asked = append(d.asked, keys)
		n := len(d.asked)
		select {
		case <-time.After(time.Second):
			return n, d.failed
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// TestCallsThatWaitShareTheNextQuestion, and never the one that was asked before they came.
func TestCallsThatWaitShareTheNextQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := desk{Together: source.NewTogether[string, int]()}
		var calls sync.WaitGroup
		answers := make(map[string]int)
		var mu sync.Mutex
		call := func(key string) {
			calls.Go(func() {
				n, err := d.ask(t.Context(), key)
				mu.Lock()
				defer mu.Unlock()
				if answers[key] = n; err != nil {
					t.Errorf("%s: %v", key, err)
				}
			})
			synctest.Wait()
		}
		for _, key := range []string{"first", "second", "third", "second"} {
			call(key)
		}
		time.Sleep(1500 * time.Millisecond)
		call("late")
		calls.Wait()
		want := [][]string{{"first"}, {"second", "third"}, {"late"}}
		if !slices.EqualFunc(d.asked, want, slices.Equal) || answers["first"] != 1 || answers["second"] != 2 || answers["third"] != 2 || answers["late"] != 3 {
			t.Errorf("asked %v, want %v; answers %v", d.asked, want, answers)
		}
	})
}

// TestOneThatIsCalledOffCostsOthersNothing, whether it asks or waits for its turn to do so. A
// failure is everybody's.
func TestOneThatIsCalledOffCostsOthersNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after time.Duration // until the second call is called off
		fails error
	}{
		"while it waits": {500 * time.Millisecond, nil},
		"while it asks":  {1500 * time.Millisecond, nil},
		"a failure":      {time.Hour, errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := desk{Together: source.NewTogether[string, int](), failed: test.fails}
				impatient, cancel := context.WithTimeout(t.Context(), test.after)
				defer cancel()
				var calls sync.WaitGroup
				for _, ctx := range []context.Context{t.Context(), impatient, t.Context(), t.Context()} {
					calls.Go(func() {
						_, err := d.ask(ctx, "")
						if want := errors.Join(test.fails, ctx.Err()); (err == nil) != (want == nil) || test.fails != nil && !errors.Is(err, test.fails) {
							t.Errorf("got %v, want %v", err, want)
						}
					})
					synctest.Wait()
				}
				calls.Wait()
			})
		})
	}
}
