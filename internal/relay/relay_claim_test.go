package relay_test

import (
	"context"
	"testing"

	"github.com/observerd/observerd/internal/sink"
)

// TestRelayClaimsASinkThatCannotBeOpened shows that the log hears of a sink that
// is in use, also while it cannot be opened: what it lacks is kept.
func TestRelayClaimsASinkThatCannotBeOpened(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Open = func(context.Context, sink.Term) (sink.Sink, error) { return nil, errBroken }
		r.log.add("orders", 1)
		r.start()
		pass(0)
		if r.log.epochNow() == 0 {
			t.Error("the log does not know the sink")
		}
	})
}
