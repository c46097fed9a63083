package guardtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/guard/guardtest"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	var g guardtest.Guard
	failed := errors.New("the gateway said no")
	var keys []string
	do := func(result error) (guard.Outcome, error) {
		return g.Do(t.Context(), "4711", "1", func(ctx context.Context, _ guard.Tx) error {
			keys = append(keys, guard.IdempotencyKey(ctx))
			return result
		})
	}
	if _, err := do(failed); !errors.Is(err, failed) {
		t.Errorf("handler that fails: %v", err)
	}
	if got, err := do(nil); got != guard.Applied || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := do(nil); got != guard.DuplicateInbox || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("idempotency keys %q", keys)
	}
	g.Fail = guard.ErrLockTimeout
	if _, err := do(nil); !errors.Is(err, guard.ErrLockTimeout) {
		t.Errorf("failure that was asked for: %v", err)
	}
}
