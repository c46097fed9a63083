package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/wait"
)

// ErrClosed reports that the keeper was closed. It is the cause with which the contexts
// of the leases end that were still held.
var ErrClosed = errors.New("the locks of this process are closed")

// maxAttempt limits one attempt to acquire a lock.
const maxAttempt = 10 * time.Second

// KeeperOptions configure a keeper.
type KeeperOptions struct {
	// Provider grants the leases. Required.
	Provider Provider
	// Logger receives records of leases that are lost and renewals that fail; nil
	// discards them.
	Logger *slog.Logger
	// Registerer receives the metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Keeper holds the leases of a process and renews them, all that are due in
// one call. It is safe for concurrent use. Its goroutine starts with the first
// lease and ends with [Keeper.Close].
type Keeper struct {
	provider Provider
	can      Capabilities
	log      *slog.Logger
	metrics  *keeperMetrics

	ctx    context.Context // the context of all renewals
	cancel context.CancelFunc
	wake   chan struct{} // wakes the loop: the earliest renewal may have changed
	work   sync.WaitGroup
	// failing: the last renewal failed.
	failing atomic.Bool

	mu      sync.Mutex
	leases  map[*Lease]struct{}
	next    time.Time // when the loop looks by itself; zero before its first look
	running bool
	closed  bool
}

// NewKeeper returns a keeper of leases from the provider.
func NewKeeper(o KeeperOptions) *Keeper {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	return &Keeper{
		provider: o.Provider,
		can:      o.Provider.Capabilities(),
		log:      o.Logger,
		metrics:  newKeeperMetrics(o.Registerer),
		ctx:      ctx,
		cancel:   cancel,
		wake:     make(chan struct{}, 1),
		leases:   make(map[*Lease]struct{}),
	}
}

// Acquire tries once to take the lock. The error is [ErrHeld] when another has
// it, and ctx's cause when ctx ended. The lease is renewed until it is
// released; its context derives from ctx.
//
// After any other error the attempt may still have succeeded at the provider, which
// then releases the lock itself; at worst the lock stays held until its TTL is over.
func (k *Keeper) Acquire(ctx context.Context, r Request) (*Lease, error) {
	return k.acquireOne(ctx, r, k.provider.Acquire)
}

func (k *Keeper) acquireOne(ctx context.Context, r Request, try func(context.Context, Request) (Grant, error)) (*Lease, error) {
	leases, err := k.acquire(ctx, []Request{r}, func(ctx context.Context) ([]Grant, error) {
		g, err := try(ctx, r)
		return []Grant{g}, err
	})
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AcquireAll takes all locks or none; their keys must differ. The error is that of
// [Keeper.Acquire], or [ErrUnsupported] when the provider has no [Sets].
func (k *Keeper) AcquireAll(ctx context.Context, requests []Request) ([]*Lease, error) {
	if k.can.Sets == nil {
		return nil, fmt.Errorf("acquire %d locks at once: %w", len(requests), ErrUnsupported)
	}
	keys := make(map[[2]string]bool, len(requests))
	for _, r := range requests {
		key := [2]string{r.Region, r.Key}
		if keys[key] {
			return nil, fmt.Errorf("acquire %d locks at once: lock %s is among them twice", len(requests), r.Key)
		}
		keys[key] = true
	}
	return k.acquire(ctx, requests, func(ctx context.Context) ([]Grant, error) { return k.can.Sets.AcquireAll(ctx, requests) })
}

// acquire makes one attempt and begins to renew what it has acquired.
func (k *Keeper) acquire(ctx context.Context, requests []Request, try func(ctx context.Context) ([]Grant, error)) ([]*Lease, error) {
	limit := maxAttempt
	for _, r := range requests {
		if err := r.validate(); err != nil {
			return nil, err
		}
		limit = min(limit, trust(r.TTL))
	}
	if !k.begin() {
		return nil, ErrClosed
	}
	defer k.work.Done()
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()
	if attempts := k.metrics.attempts; attempts != nil {
		for _, r := range requests {
			attempts.WithLabelValues(r.Name).Inc()
		}
	}
	grants, err := try(attempt)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case k.ctx.Err() != nil:
			return nil, ErrClosed
		}
		return nil, err
	}
	leases := make([]*Lease, len(grants))
	for i, g := range grants {
		l, kept := k.keep(ctx, g)
		leases[i], err = l, errors.Join(err, kept)
	}
	if err != nil {
		leases = slices.DeleteFunc(leases, func(l *Lease) bool { return l == nil })
		return nil, errors.Join(err, releaseAll(ctx, leases))
	}
	return leases, nil
}

// AcquireWithin tries again, after growing and random pauses, while another has the
// lock, until the time is over; then it returns the [ErrHeld] of the last attempt. With a
// time of 0 or less it tries once.
func (k *Keeper) AcquireWithin(ctx context.Context, r Request, within time.Duration) (*Lease, error) {
	end := time.Now().Add(within)
	pauses := wait.NewBackoff(50*time.Millisecond, 500*time.Millisecond)
	for {
		l, err := k.Acquire(ctx, r)
		left := time.Until(end)
		if !errors.Is(err, ErrHeld) || left <= 0 {
			return l, err
		}
		if !wait.For(ctx, min(pauses.NextBackOff(), left)) {
			return nil, context.Cause(ctx)
		}
	}
}

// Close refuses new leases, releases those that are still held (their contexts end
// with [ErrClosed]) and waits until nothing of the keeper runs, or ctx ends. It tries
// to release each lease, also when ctx has ended: all at the same time, so that a
// provider which hangs costs the time of one release.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	held := slices.Collect(maps.Keys(k.leases))
	k.mu.Unlock()
	err := releaseAll(ctx, held)
	k.cancel()
	return errors.Join(err, wait.Group(ctx, &k.work, "renewals and releases of leases"))
}

// releaseAll ends and releases the leases.
func releaseAll(ctx context.Context, leases []*Lease) error {
	errs := make([]error, len(leases))
	var releases sync.WaitGroup
	for i, l := range leases {
		_ = l.end(ErrClosed)
		releases.Go(func() {
			if err := l.Release(ctx); !errors.Is(err, ErrLost) {
				errs[i] = err
			}
		})
	}
	releases.Wait()
	return errors.Join(errs...)
}

// begin reports whether an attempt may begin; [Keeper.Close] waits for its end then.
func (k *Keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.work.Add(1)
	}
	return !k.closed
}

// keep begins to renew a grant. It releases a grant whose answer came after Close, or
// so late that it can no longer be trusted.
func (k *Keeper) keep(ctx context.Context, g Grant) (*Lease, error) {
	l := newLease(ctx, k, g)
	if !time.Now().Before(l.trustedUntil()) {
		_ = l.end(ErrLost)
		if err := l.Release(ctx); err != nil && !errors.Is(err, ErrLost) {
			k.log.Warn("Late lease not released; it ends with its TTL", "lock", g.Key, "err", err)
		}
		return nil, fmt.Errorf("acquire lock %s: the answer came after the lease could be trusted: %w", g.Key, ErrLost)
	}
	if !k.add(l) {
		_ = l.end(ErrClosed)
		return nil, errors.Join(ErrClosed, l.Release(ctx))
	}
	return l, nil
}

// add adds the lease to those that the keeper renews. It reports false after Close. A look
// is at all leases, so the loop is not woken for one that it will renew in time anyway.
func (k *Keeper) add(l *Lease) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.leases[l] = struct{}{}
	k.metrics.held.Set(float64(len(k.leases)))
	switch {
	case !k.running:
		k.running = true
		k.work.Go(k.loop)
	case l.due.Before(k.next):
		k.wakeLoop()
	}
	return true
}

func (k *Keeper) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.leases, l)
	k.metrics.held.Set(float64(len(k.leases)))
}

// wakeLoop lets the loop check again which renewals are due.
func (k *Keeper) wakeLoop() { wait.Wake(k.wake) }

// keeperMetrics count the keeper's leases and their renewals.
type keeperMetrics struct {
	attempts *prometheus.CounterVec // nil where nothing is registered: there may be any number of names
	held     prometheus.Gauge
	renewals *prometheus.CounterVec
	lost     prometheus.Counter
}

func newKeeperMetrics(reg prometheus.Registerer) *keeperMetrics {
	made := promauto.With(reg)
	m := &keeperMetrics{
		held: made.NewGauge(prometheus.GaugeOpts{
			Name: "observerd_leases_held",
			Help: "Leases that this process holds.",
		}),
		renewals: made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_lease_renewals_total",
			Help: "Renewals of leases by result; a call that failed counts once as error.",
		}, []string{"result"}),
		lost: made.NewCounter(prometheus.CounterOpts{
			Name: "observerd_leases_lost_total",
			Help: "Leases that ended before they were released.",
		}),
	}
	for _, result := range []string{Renewed.String(), Unknown.String(), Lost.String(), "error"} {
		m.renewals.WithLabelValues(result)
	}
	if reg != nil {
		m.attempts = made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_lock_attempts_total",
			Help: "Attempts to take a lock that were sent to its provider, with or without success, by the lock's name.",
		}, []string{"lock"})
	}
	return m
}
