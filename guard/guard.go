package guard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/locks"
)

// Defaults of the options.
const (
	DefaultSubject = "order"
	DefaultLease   = 30 * time.Second
	DefaultWait    = 5 * time.Second
	DefaultKeep    = 30 * 24 * time.Hour
)

// Options configure a guard.
type Options struct {
	// Locks takes the locks. Its region names the metrics, too. Required. It is the caller's.
	Locks *locks.Manager
	// DB, or Pgx, is the consumer's database, a PostgreSQL with the table of [SQL]. Exactly
	// one is required, which is the caller's. The user needs SELECT, INSERT and DELETE on it.
	DB  *sql.DB
	Pgx *pgxpool.Pool
	// Consumer is the name under which events count as processed. Required.
	Consumer string
	// Subject is that of the locks, which the manager must know: the key 4711 is locked as
	// order:4711. Empty means [DefaultSubject].
	Subject string
	// Lease is the TTL of the locks: how long a process that dies keeps others from its key.
	// 0 means [DefaultLease]; at least 1 s.
	Lease time.Duration
	// Wait is how long another that has the key is waited for. 0 means [DefaultWait].
	Wait time.Duration
	// Seen is asked before a transaction is begun; see guard/redisseen. Nil leaves it out.
	Seen Seen
	// Keep is how long processed events are remembered. It must be longer than the bus may
	// deliver an event again. 0 means [DefaultKeep].
	Keep time.Duration
	// Logger receives records with keys and event ids, and never what an event contains; nil
	// discards them.
	Logger *slog.Logger
}

// Seen remembers events that were committed. It saves a transaction for a repeat, and decides
// nothing else: its errors are counted and passed over.
type Seen interface {
	// Has reports whether the id was added.
	Has(ctx context.Context, id string) (bool, error)
	// Add remembers the id for that long at least.
	Add(ctx context.Context, id string, ttl time.Duration) error
}

const (
	// seenFor is how long Seen remembers, at most.
	seenFor = 24 * time.Hour
	// seenLimit bounds what Seen may cost.
	seenLimit = time.Second
)

func (o *Options) setDefaults() error {
	o.Subject = cmp.Or(o.Subject, DefaultSubject)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Locks == nil:
		return &InputError{"Options.Locks", "is missing; open a manager with locks.Open"}
	case (o.DB == nil) == (o.Pgx == nil):
		return &InputError{"Options.DB", "and Options.Pgx are both set, or neither; set the one that the handlers use"}
	case o.Consumer == "" || len(o.Consumer) > maxText || strings.ContainsRune(o.Consumer, 0):
		return &InputError{"Options.Consumer", fmt.Sprintf("is empty or longer than %d bytes; name the service, such as payments", maxText)}
	case o.Lease < time.Second:
		return &InputError{"Options.Lease", "is shorter than 1s; write 30s, for example, or leave it out"}
	case o.Wait < 0:
		return &InputError{"Options.Wait", "is negative; write 5s, for example, or leave it out"}
	case o.Keep < time.Minute:
		return &InputError{"Options.Keep", "is shorter than 1m; it must exceed the time for which the bus may deliver an event again"}
	}
	return nil
}

// maxText is the longest key, event id or name of a consumer, in bytes.
const maxText = 512

// Guard lets each event be processed once. It is safe for concurrent use, and needs no Close.
type Guard struct {
	opts    Options
	metrics *metrics
	// swept is when this process last wanted to delete old rows, in nanoseconds since 1970.
	swept atomic.Int64
}

// New returns a guard. The error is an [*InputError] for an option that cannot be, a
// [*locks.DescriptorError] or [*locks.PolicyError] when the manager refuses the subject or the
// lease, [ErrNoTable], [ErrReadOnly], or [ErrUnavailable] when the database does not answer.
func New(ctx context.Context, o Options) (*Guard, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	g := &Guard{opts: o, metrics: newMetrics(o.Locks.Region())}
	if err := o.Locks.Check(g.lockOf("key")); err != nil {
		return nil, fmt.Errorf("guard: the manager of the locks refuses those of Options.Subject and Options.Lease: %w", err)
	}
	if err := g.check(ctx); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	g.swept.Store(time.Now().UnixNano())
	return g, nil
}

// Outcome is how an event came to be processed.
type Outcome string

// The outcomes. Those of a repeat name what knew it.
const (
	// Applied says that this call has committed the event.
	Applied Outcome = "applied"
	// Seen, the inbox or its unique constraint knew that it was committed before.
	DuplicateSeen       Outcome = "seen"
	DuplicateInbox      Outcome = "inbox"
	DuplicateConstraint Outcome = "constraint"
)

// Duplicate reports whether the event had been processed before.
func (o Outcome) Duplicate() bool { return o != Applied && o != "" }

// event is what one call is about.
type event struct{ key, id string }

func (e event) check() error {
	for field, text := range map[string]string{"key": e.key, "event id": e.id} {
		if text == "" || len(text) > maxText || strings.ContainsRune(text, 0) {
			return &InputError{field, fmt.Sprintf("is empty, longer than %d bytes, or has a zero byte; hash what is longer", maxText)}
		}
	}
	if strings.Contains(e.key, "%") || strings.Contains(":"+e.key+":", "::") {
		return &InputError{"key", "has a % or nothing between two colons, which the lock would write otherwise; replace them"}
	}
	return nil
}

func (g *Guard) lockOf(key string) locks.Descriptor {
	return locks.Descriptor{Subject: g.opts.Subject, Predicate: "processing", Resources: strings.Split(key, ":"), TTL: g.opts.Lease}
}

type contextKey struct{}

// attempt is what a handler may ask its context for.
type attempt struct {
	id    string
	fence int64
}

// IdempotencyKey is a UUID of the consumer and the event, the same in every attempt, for
// systems that a handler calls. It is empty for a context that is no handler's.
func IdempotencyKey(ctx context.Context) string {
	a, _ := ctx.Value(contextKey{}).(attempt)
	return a.id
}

// FenceOf is the fencing token of the handler's lock, for systems that compare it: the greatest
// one is the latest. It is 0 for a context that is no handler's.
func FenceOf(ctx context.Context) int64 {
	a, _ := ctx.Value(contextKey{}).(attempt)
	return a.fence
}

// WithAttempt returns a context that has these, as that of a handler does, for its tests.
func WithAttempt(ctx context.Context, idempotencyKey string, fence int64) context.Context {
	return context.WithValue(ctx, contextKey{}, attempt{idempotencyKey, fence})
}

// space begins the names whose UUIDs are idempotency keys.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/observerd/observerd/guard"))

// Handler does the work of an event in a transaction that the guard commits. Its context ends
// with the lease; then the transaction is rolled back, and nothing that it does is committed.
type Handler func(ctx context.Context, tx Tx) error

// Do takes the lock of the key, and runs the handler and commits unless the event was processed
// before. The key is what handlers must not work on at the same time, such as a number of an
// order; the event id is that of the event, whatever it is about.
//
// An error of the handler rolls back and is returned, wrapped; [ErrPermanent] in it is its own.
// Others are those of this package, ctx's cause, an [*InputError] for a key or an event id that
// cannot be, and a [*locks.PolicyError].
func (g *Guard) Do(ctx context.Context, key, eventID string, f Handler) (Outcome, error) {
	e := event{key, eventID}
	if err := e.check(); err != nil {
		return "", err
	}
	outcome, err := g.do(ctx, e, f)
	g.metrics.done(outcome, err)
	if err != nil {
		g.opts.Logger.Debug("Event not processed", "consumer", g.opts.Consumer, "key", key, "event_id", eventID, "kind", kindOf(err))
		return "", fmt.Errorf("guard: event %s of %s: %w", eventID, key, err)
	}
	g.sweep(ctx)
	return outcome, nil
}

func (g *Guard) do(ctx context.Context, e event, f Handler) (Outcome, error) {
	began := time.Now()
	l, err := g.opts.Locks.Acquire(ctx, g.lockOf(e.key), locks.Within(g.opts.Wait))
	g.metrics.wait.Observe(time.Since(began).Seconds())
	if err != nil {
		return "", lockError(ctx, err)
	}
	defer g.release(ctx, l, e, time.Now())
	if g.hasSeen(ctx, e) {
		return DuplicateSeen, nil
	}
	outcome, err := g.apply(l, e, f, g.opts.Wait-time.Since(began))
	if err == nil {
		g.remember(ctx, e)
	}
	return outcome, err
}

// release gives the lock back, after the commit.
func (g *Guard) release(ctx context.Context, l *locks.Lease, e event, since time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
	defer cancel()
	g.metrics.hold.Observe(time.Since(since).Seconds())
	if err := l.Release(ctx); err != nil && !errors.Is(err, ErrLost) {
		g.opts.Logger.Warn("Lock of an event not released; it ends with its TTL", "key", e.key, "event_id", e.id, "err", err)
	}
}

// apply does the work in one transaction. wait is what is left for that of an earlier holder.
func (g *Guard) apply(l *locks.Lease, e event, f Handler, wait time.Duration) (Outcome, error) {
	t, err := g.begin(l.Context(), wait)
	if err != nil {
		return "", err
	}
	defer t.end()
	applied, err := t.take(g, e, wait)
	if err != nil {
		return "", err
	}
	if applied {
		return DuplicateInbox, nil
	}
	if err := g.handle(t, l, e, f); err != nil {
		return "", err
	}
	fresh, err := t.note(g, e, l.Fence())
	if err != nil {
		return "", err
	}
	if !fresh {
		return DuplicateConstraint, nil
	}
	return g.commit(t, l, e)
}

// handle runs the handler. What it returned after the lease had ended is of no account, but
// for [ErrPermanent].
func (g *Guard) handle(t *transaction, l *locks.Lease, e event, f Handler) (err error) {
	began := time.Now()
	defer func() {
		g.metrics.handler.Observe(time.Since(began).Seconds())
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	id := uuid.NewSHA1(space, []byte(g.opts.Consumer+"\x00"+e.id)).String()
	err = f(WithAttempt(t.ctx, id, l.Fence()), t.Tx)
	if cause := context.Cause(t.ctx); cause != nil && !errors.Is(err, ErrPermanent) {
		return errors.Join(dbError(t.ctx, cause), err)
	}
	return err
}

func (g *Guard) commit(t *transaction, l *locks.Lease, e event) (Outcome, error) {
	if t.ctx.Err() != nil {
		return "", dbError(t.ctx, nil)
	}
	err := t.within(answer, func() error { return t.commit(t.ctx) })
	switch {
	case err == nil:
		return Applied, nil
	case !isUnknown(err):
		return "", err
	}
	t.end() // Its connection may be the only one.
	return g.findOut(l.Context(), e, err)
}

// findOut looks for an event whose commit was not answered, once the transaction has ended: it
// holds the key until then, wherever its connection is.
func (g *Guard) findOut(ctx context.Context, e event, why error) (Outcome, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		applied, err := g.look(ctx, e)
		switch {
		case err == nil && applied:
			return Applied, nil
		case err == nil:
			return "", fmt.Errorf("%w: the commit has failed: %w", ErrLost, why)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w: %w", ErrUnknown, why, err)
		case <-time.After(pause):
		}
	}
}

func (g *Guard) look(ctx context.Context, e event) (applied bool, err error) {
	t, err := g.begin(ctx, 0)
	if err != nil {
		return false, err
	}
	defer t.end()
	return t.take(g, e, g.opts.Lease)
}

// seenID is the event's id in what several consumers may share.
func (g *Guard) seenID(e event) string { return g.opts.Consumer + ":" + e.id }

func (g *Guard) hasSeen(ctx context.Context, e event) (known bool) {
	g.askSeen(ctx, e, func(ctx context.Context) (err error) {
		known, err = g.opts.Seen.Has(ctx, g.seenID(e))
		return err
	})
	return known
}

func (g *Guard) remember(ctx context.Context, e event) {
	g.askSeen(context.WithoutCancel(ctx), e, func(ctx context.Context) error {
		return g.opts.Seen.Add(ctx, g.seenID(e), min(seenFor, g.opts.Keep))
	})
}

func (g *Guard) askSeen(ctx context.Context, e event, ask func(ctx context.Context) error) {
	if g.opts.Seen == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, seenLimit)
	defer cancel()
	if err := ask(ctx); err != nil {
		g.metrics.seenErrors.Inc()
		g.opts.Logger.Debug("What was seen is not known", "key", e.key, "event_id", e.id, "err", err)
	}
}

const (
	sweepEvery = time.Minute
	sweepRows  = 1000
	sweepLimit = 5 * time.Second
)

// sweep deletes what is older than Options.Keep, at most once a minute, and in one process.
func (g *Guard) sweep(ctx context.Context) {
	last, now := g.swept.Load(), time.Now()
	if now.UnixNano()-last < int64(sweepEvery) || !g.swept.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	err := g.opts.Locks.Do(ctx, locks.Name("guard-retention:"+g.opts.Consumer), func(ctx context.Context, _ *locks.Lease) error {
		for rows := int64(sweepRows); rows == sweepRows; {
			var err error
			if rows, err = g.sweepOnce(ctx); err != nil {
				return err
			}
		}
		return nil
	}, locks.FailFast())
	if err != nil && !errors.Is(err, locks.ErrHeld) && ctx.Err() == nil {
		g.opts.Logger.Warn("Old events not deleted; tried again in a minute", "consumer", g.opts.Consumer, "err", err)
	}
}
