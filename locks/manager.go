package locks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
)

// Provider grants the leases. The packages below this one open providers, such as
// [github.com/observerd/observerd/locks/database]; a program links the drivers of those
// alone that it imports. Its methods are for the manager: one that a program wraps is
// embedded, and its Capabilities say what the wrapper has.
type Provider = lock.Provider

// Capabilities are what a provider has beside exclusive locks. What is missing is refused with
// [ErrUnsupported], but for the line, in place of which each manager has a queue of its callers.
type Capabilities = lock.Capabilities

// DefaultRegion keeps general locks apart from those of the pollers.
const DefaultRegion = "LOCKS"

// maxRegion is the width of INT_LOCK.REGION.
const maxRegion = 100

// Options configure a manager.
type Options struct {
	// Provider grants the leases. Required. It belongs to the manager, which closes it.
	Provider Provider
	// Region separates applications that share a provider; those of one region compete.
	// Empty means [DefaultRegion].
	Region string
	// Node is the readable name of this process, as others see the holder of a lock.
	// Empty means the name of the host.
	Node string
	// Subjects and Predicates are known beside the built-in ones; see [Subjects] and
	// [Predicates].
	Subjects, Predicates []string
	// Hierarchies are subjects, each below the one before it, beside those of
	// [DefaultHierarchies]. See [WithIntents].
	Hierarchies [][]string
	// Policies are the rules of a team beside [DefaultPolicies]. A lock must keep all of
	// those that are for it.
	Policies []Policy
	// Registerer receives the metrics; nil registers none. Managers that share one and the
	// prefix share the metrics.
	Registerer prometheus.Registerer
	// MetricsPrefix is how the names of the metrics begin. Empty means
	// [DefaultMetricsPrefix].
	MetricsPrefix string
	// Logger receives records of leases that are lost and renewals that fail; nil
	// discards them.
	Logger *slog.Logger
}

func (o *Options) setDefaults() (err error) {
	o.Region = cmp.Or(o.Region, DefaultRegion)
	if len(o.Region) > maxRegion || !plain(o.Region) {
		return fmt.Errorf("locks: Options.Region %q is longer than %d bytes, or has blanks around it, or control or invisible characters in it; use a short name, such as %s", o.Region, maxRegion, DefaultRegion)
	}
	for _, word := range append(slices.Clone(o.Subjects), o.Predicates...) {
		if word == "" || !plain(word) {
			return fmt.Errorf("locks: the subject or predicate %q is empty, or has blanks around it, or control or invisible characters in it; use a name, such as invoice", word)
		}
	}
	if o.Node == "" {
		if o.Node, err = os.Hostname(); err != nil {
			return fmt.Errorf("locks: this host has no name; set Options.Node: %w", err)
		}
	}
	o.MetricsPrefix = cmp.Or(o.MetricsPrefix, DefaultMetricsPrefix)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return nil
}

// Manager acquires locks and renews their leases. It is safe for concurrent use.
type Manager struct {
	rules  *Rules
	opts   Options
	can    Capabilities
	keeper *lock.Keeper
	// attempts has one for each attempt that runs, and no more room than the provider can
	// make; nil where it does not say.
	attempts chan struct{}
	order    order
	failures *failures
	metrics  *metrics
}

// Open returns a manager of the provider's locks. The error says which option is wrong; the
// provider is closed then.
func Open(_ context.Context, o Options) (*Manager, error) {
	if o.Provider == nil {
		return nil, errors.New("locks: Options.Provider is missing; open one with locks/database or locks/redis")
	}
	if err := o.setDefaults(); err != nil {
		return nil, errors.Join(err, closeProvider(o.Provider))
	}
	rules, err := NewRules(o)
	if err != nil {
		return nil, errors.Join(err, closeProvider(o.Provider))
	}
	m := &Manager{opts: o, rules: rules, can: o.Provider.Capabilities()}
	if m.metrics, err = newMetrics(o, m.can.Name); err != nil {
		return nil, errors.Join(err, closeProvider(o.Provider))
	}
	m.order = newQueue(m.can.Notify, m.try, o)
	if m.can.Line != nil {
		m.order = newLine(m.can.Line, m.try, o.Logger)
	}
	m.failures = newFailures(m.can.FailureLog, o)
	m.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: o.Provider, Logger: o.Logger})
	if m.can.MostAttempts > 0 {
		m.attempts = make(chan struct{}, m.can.MostAttempts)
	}
	return m, nil
}

// Region is where the locks of the manager are, as [Options.Region] says.
func (m *Manager) Region() string { return m.opts.Region }

// Check returns the error with which Acquire refuses the descriptor before it asks the
// provider, a [*DescriptorError] or a [*PolicyError].
func (m *Manager) Check(d Descriptor) error {
	return m.rules.Check(d)
}

// Close releases all leases, whose contexts end with [ErrClosed], refuses those who wait, and
// closes the provider. It tries to release each of them also when ctx has ended.
func (m *Manager) Close(ctx context.Context) error {
	err := errors.Join(m.keeper.Close(ctx), m.order.close(ctx))
	m.failures.close()
	return errors.Join(err, closeProvider(m.opts.Provider))
}

func closeProvider(p Provider) error {
	if closer := p.Capabilities().Closer; closer != nil {
		return closer.Close()
	}
	return nil
}

// Acquire takes a lock, and waits for it as the options say. The lease is renewed until
// it is released, and its context derives from ctx.
//
// The end of ctx ends the wait, and later the lease: its context ends, it is renewed no more,
// and others get the lock when it is released, or at the end of its TTL. So a deadline of ctx
// is one of the work too; [Within] bounds the wait alone. Work that may end after ctx, and
// takes longer than the TTL then, needs a context without that end.
//
// A caller whose ctx is that of a lease of the same lock, or derives from it, gets the
// lock at once, as another [Lease] of the same term, with the TTL and the metadata of the
// first; the lock is free when all of them were released. The policies for what each of them
// asked for hold together: the TTL must keep them all, and so must that of [Lease.Extend]. If it
// asks for a mode that the held one does not cover, the error is a [*NestedError]. Any other
// caller, also of this process, waits.
//
// Callers that wait stand in line: the lock goes to the greatest priority, and then to the
// one who has waited for longest. None is passed by a caller whose mode does not go with
// its own, not even by one that tries once.
// Where the provider has no line, that is so among the callers of one manager.
//
// The error is a [*DescriptorError] for a descriptor that no lock can have, a
// [*PolicyError] for one that a policy refuses, a [*HeldError] when another has kept the
// lock, or was ahead in line, for as long as Acquire was to wait, and ctx's cause when ctx
// has ended. Any other error is the provider's: nothing is known then of who has the lock.
func (m *Manager) Acquire(ctx context.Context, d Descriptor, options ...Option) (*Lease, error) {
	leases, err := m.AcquireAll(ctx, []Descriptor{d}, options...)
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AcquireAll takes several locks, all or none, in one step: callers that take the same
// locks in different orders do not block each other. Otherwise it is [Manager.Acquire].
// The leases are in the order of the descriptors; the intents of [WithIntents] belong to
// them, and one that several have in common is held until the last of them is released. The
// loss of one ends the contexts of all, and a caller that has the context of one holds all. The
// error is a [*DescriptorError] when there is no descriptor or two of them are one lock, and
// [ErrUnsupported] when the provider takes one lock at a time.
func (m *Manager) AcquireAll(ctx context.Context, ds []Descriptor, options ...Option) (Leases, error) {
	how, err := m.waitingOf(options)
	if err != nil {
		return nil, err
	}
	all, err := m.prepareAll(ds, how)
	if err != nil {
		return nil, err
	}
	leases, err := m.acquire(ctx, all, how)
	if err != nil {
		return nil, err
	}
	intents := len(all) - len(ds)
	if how.intents {
		m.rules.hierarchies.attach(leases[:intents], leases[intents:])
	}
	return leases[intents:], nil
}

// acquire takes all locks or none.
func (m *Manager) acquire(ctx context.Context, ds []Descriptor, how waiting) (all Leases, err error) {
	bound := how.maxHold
	how.maxHold = m.rules.policies.maxHold(ds, bound)
	nested, others, err := m.nestAll(ctx, ds)
	if err != nil {
		return nil, err
	}
	defer func() { // Also where the caller's pauses panic.
		if all == nil {
			err = errors.Join(err, nested.Release(ctx))
		}
	}()
	var taken Leases
	if len(others) > 0 {
		taken, err = m.take(ctx, others, how, func(ctx context.Context) ([]*lock.Lease, int, error) { return m.wait(ctx, others, how) })
		if err != nil {
			return nil, err
		}
	}
	for _, l := range nested {
		if len(taken) > 0 {
			l.joins(taken)
		}
		if limit := m.rules.policies.maxHold([]Descriptor{l.asked}, bound); limit > 0 {
			l.endAfter(limit)
		}
		l.endWithContext()
	}
	return inOrder(ds, nested, taken), nil
}

// inOrder returns both leases that are nested and those that were taken in the order of the
// locks.
func inOrder(ds []Descriptor, nested, taken Leases) Leases {
	all := make(Leases, len(ds))
	for i, d := range ds {
		from := &taken
		if len(nested) > 0 && nested[0].hold.lock.Key() == d.Key() {
			from = &nested
		}
		all[i], *from = (*from)[0], (*from)[1:]
	}
	return all
}

// prepareAll returns the descriptors as the provider is asked for them, those of the
// intents first.
func (m *Manager) prepareAll(ds []Descriptor, how waiting) ([]Descriptor, error) {
	if len(ds) == 0 {
		return nil, &DescriptorError{"locks", "", "are missing; name at least one"}
	}
	all := make([]Descriptor, len(ds))
	for i, d := range ds {
		var err error
		if all[i], err = m.prepare(d); err != nil {
			return nil, err
		}
		same := func(other Descriptor) bool { return other.Key() == all[i].Key() }
		if slices.ContainsFunc(all[:i], same) {
			return nil, &DescriptorError{"resources", d.String(), "are those of another lock that is asked for at the same time; leave one out"}
		}
	}
	if !how.intents {
		return all, nil
	}
	intents, err := m.rules.hierarchies.intents(all)
	for i := 0; i < len(intents) && err == nil; i++ {
		intents[i], err = m.prepare(intents[i])
	}
	return append(intents, all...), err
}

// nestAll returns leases of those locks that the caller holds, and the others.
func (m *Manager) nestAll(ctx context.Context, ds []Descriptor) (nested Leases, others []Descriptor, err error) {
	for _, d := range ds {
		h := m.heldBy(ctx, d)
		if h == nil {
			others = append(others, d)
			continue
		}
		l, err := h.nest(ctx, d)
		if err != nil {
			return nil, nil, errors.Join(err, nested.Release(ctx))
		}
		nested = append(nested, l)
	}
	return nested, others, nil
}

// take has get take the locks from the provider, and say how often it tried.
func (m *Manager) take(ctx context.Context, ds []Descriptor, how waiting, get func(ctx context.Context) ([]*lock.Lease, int, error)) (leases Leases, err error) {
	for i, d := range ds {
		if err := m.rules.policies.enter(d); err != nil {
			m.leave(ds[:i])
			m.metrics.acquired(ctx, []Descriptor{d}, time.Now(), 1, nil, err)
			return nil, err
		}
	}
	s := &set{}
	s.held.Store(int64(len(ds)))
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer func() { // Also where the caller's pauses panic.
		if leases == nil {
			m.leave(ds)
			s.cancel(err)
		}
	}()
	began := time.Now()
	held, tries, err := get(ctx)
	m.metrics.acquired(ctx, ds, began, tries, held, err)
	if err != nil {
		m.failures.count(err)
		return nil, err
	}
	m.bound(ds, held, how)
	return newHolds(ctx, m, ds, held, s), nil
}

func (m *Manager) leave(ds []Descriptor) {
	for _, d := range ds {
		m.rules.policies.leave(d)
	}
}

// Do runs f under a lock. The context that f gets ends when the lease cannot be trusted
// any more. The lock is released when f returns or panics.
//
// The error is that of [Manager.Acquire], or of f. It is also [ErrLost] when the lease
// ended before f did: another may have had the lock meanwhile.
func (m *Manager) Do(ctx context.Context, d Descriptor, f func(ctx context.Context, l *Lease) error, options ...Option) (err error) {
	l, err := m.Acquire(ctx, d, options...)
	if err != nil {
		return err
	}
	defer func() {
		switch released := l.Release(ctx); {
		case errors.Is(released, ErrLost):
			err = errors.Join(err, released)
		case released != nil:
			// f has run under the lock to its end.
			m.opts.Logger.Warn("Lock not released; it ends with its TTL", "lock", d.String(), "err", released)
		}
	}()
	return f(l.Context(), l)
}

// prepare returns the descriptor as the provider is asked for it.
func (m *Manager) prepare(d Descriptor) (Descriptor, error) {
	d, err := m.rules.allowed(d)
	if refused, ok := errors.AsType[*PolicyError](err); ok {
		m.metrics.acquired(context.Background(), []Descriptor{refused.Lock}, time.Now(), 1, nil, err)
	}
	d.TTL = m.inForce(d.TTL)
	return d, err
}

// inForce is the TTL that a lease gets which is to have ttl.
func (m *Manager) inForce(ttl time.Duration) time.Duration { return max(ttl, m.can.MinTTL) }

// request is what the provider is asked for.
func (m *Manager) request(d Descriptor) (lock.Request, error) {
	key := d.Key()
	r := lock.Request{
		Key: key, Region: m.opts.Region, TTL: d.TTL, Mode: lock.Mode(d.Mode),
		Name: key, Node: m.opts.Node, Descriptor: d.String(),
	}
	if len(d.Metadata) > 0 {
		text, err := json.Marshal(d.Metadata)
		if err != nil {
			return r, fmt.Errorf("metadata of %s: %w", d, err)
		}
		r.Metadata = string(text)
	}
	return r, nil
}
