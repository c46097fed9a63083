package githublock

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"
	"github.com/prometheus/client_golang/prometheus"
)

// budget counts what is left of the requests that the server allows to this process.
type budget struct {
	Options
	gauge prometheus.Collector // nil where another is counted

	mu               sync.Mutex
	writes           []time.Time // of the last hour
	limit, remaining int         // of the rate limit, as the server says; 0 before the first answer
	reset            time.Time   // when all of it is there again
	warned           time.Time
}

// share of the writes of an hour is what a person is told of.
const share = 0.8

func newBudget(o Options) (*budget, error) {
	b := &budget{Options: o}
	if o.Registerer == nil {
		return b, nil
	}
	b.gauge = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "observerd_locks_github_budget_remaining",
		Help:        "Share of the requests that GitHub allows in an hour which is left, from 0 to 1: of those that create content, counted in this process, or of the rate limit if that is less.",
		ConstLabels: prometheus.Labels{"repository": o.Repository},
	}, b.left)
	err := o.Registerer.Register(b.gauge)
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok { // The first provider of the repository is counted.
		b.gauge, err = nil, nil
	}
	return b, err
}

// wrote counts a request that creates content. GitHub does not say which do, so all that write
// count.
func (b *budget) wrote() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.writes = append(b.recent(now), now)
	if n := len(b.writes); float64(n) >= share*float64(b.Budget) && now.Sub(b.warned) >= time.Hour {
		b.warned = now
		b.Logger.Warn("Most of the requests that may create content in an hour are used; use fewer locks or a longer heartbeat", "repository", b.Repository, "requests", n, "budget", b.Budget)
	}
}

// recent are the writes of the last hour.
func (b *budget) recent(now time.Time) []time.Time {
	for len(b.writes) > 0 && now.Sub(b.writes[0]) >= time.Hour {
		b.writes = b.writes[1:]
	}
	return b.writes
}

// answered reads what the server says of its rate limit.
func (b *budget) answered(h http.Header) {
	limit, err := strconv.Atoi(h.Get(github.HeaderRateLimit))
	remaining, failed := strconv.Atoi(h.Get(github.HeaderRateRemaining))
	if err != nil || failed != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit, b.remaining = limit, remaining
	if reset, err := strconv.ParseInt(h.Get(github.HeaderRateReset), 10, 64); err == nil {
		b.reset = time.Unix(reset, 0)
	}
}

// left is the share that is left, from 0 to 1.
func (b *budget) left() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	left := max(0, 1-float64(len(b.recent(now)))/float64(b.Budget))
	if b.limit > 0 && now.Before(b.reset) {
		left = min(left, float64(b.remaining)/float64(b.limit))
	}
	return left
}
