package access

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/observerd/observerd/internal/source"
)

// beginnersPerConnection lets one poll talk to the coordination database while another
// has the connection.
const beginnersPerConnection = 2

// beginners lets only a few polls of a source begin at a time, in the order in which
// they came. Each call of a source waits for a connection; if hundreds of polls
// began at once, each of their calls would wait behind those of all the others, and the
// time of a poll would be over before it had read a row.
//
// A poll is no beginner any more once it reads, or waits for a locked table: so one
// that takes long keeps nobody from beginning, and its next statements stand in line
// with those of a few.
type beginners struct {
	places  *semaphore.Weighted
	waiting prometheus.Gauge
}

// enter waits for a place. The calls of the poll have the context that it returns, and
// leave is called when the poll has ended. The error is the cause of the end of ctx.
func (b *beginners) enter(ctx context.Context) (begun context.Context, leave func(), err error) {
	if !b.places.TryAcquire(1) {
		b.waiting.Inc()
		err := b.places.Acquire(ctx, 1)
		b.waiting.Dec()
		if err != nil {
			return ctx, func() {}, context.Cause(ctx)
		}
	}
	leave = sync.OnceFunc(func() { b.places.Release(1) })
	return source.WithBeginner(ctx, leave), leave, nil
}
