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
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/guard/internal/attempt"
	"github.com/observerd/observerd/locks"
)

// Defaults of the options.
const (
	defaultSubject = "order"
	defaultLease   = 30 * time.Second
	defaultWait    = 5 * time.Second
	defaultKeep    = 30 * 24 * time.Hour
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
	// order:4711. Empty means order.
	Subject string
	// Lease is the TTL of the locks: how long a process that dies keeps others from its key.
	// 0 means 30 s; at least 1 s.
	Lease time.Duration
	// Wait is how long another that has the key is waited for. 0 means 5 s.
	Wait time.Duration
	// Seen is asked before a transaction is begun; see guard/redisseen. Nil leaves it out.
	Seen Seen
	// Keep is how long processed events are remembered. It must be longer than the bus may
	// deliver an event again. 0 means 30 days.
	Keep time.Duration
	// Logger receives records with keys and event ids, and never what an event contains; nil
	// discards them.
	Logger *slog.Logger
}

// Seen remembers events that were committed. It saves a transaction for a repeat, and decides
// nothing else: its errors are counted and passed over.
type Seen interface {
	// Has reports whether the id was added. It is a UUID of the consumer and the event.
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
	o.Subject = cmp.Or(o.Subject, defaultSubject)
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Wait = cmp.Or(o.Wait, defaultWait)
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	switch {
	case o.Locks == nil:
		return &InputError{"Options.Locks", "is missing; open a manager with locks.Open"}
	case (o.DB == nil) == (o.Pgx == nil):
		return &InputError{"Options.DB", "and Options.Pgx are both set, or neither; set the one that the handlers use"}
	case !isText(o.Consumer):
		return &InputError{"Options.Consumer", fmt.Sprintf("is empty, longer than %d bytes or no text; name the service, such as payments", maxText)}
	case o.Lease < time.Second:
		return &InputError{"Options.Lease", "is shorter than 1s; use 30s, for example, or leave it out"}
	case o.Wait < 0:
		return &InputError{"Options.Wait", "is negative; use 5s, for example, or leave it out"}
	case o.Keep < time.Minute:
		return &InputError{"Options.Keep", "is shorter than 1m; it must exceed the time for which the bus may deliver an event again"}
	}
	return nil
}

// maxText is the longest key, event id or name of a consumer, in bytes.
const maxText = 512

// isText reports whether the database can keep the text.
func isText(s string) bool {
	return s != "" && len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// Guard lets each event be processed once. It is safe for concurrent use, and needs no Close.
type Guard struct {
	opts    Options
	texts   texts
	metrics *metrics
	// swept is when this process last wanted to delete old rows, in nanoseconds since 1970.
	swept atomic.Int64
}

// New returns a guard. The error is an [*InputError] for an option that cannot be, a
// [*locks.DescriptorError] or [*locks.PolicyError] when the manager refuses the subject or the
// lease, [ErrNoTable], [ErrReadOnly], [ErrUnavailable] when the database does not answer, or its own
// when it refuses, as where a right is missing.
func New(ctx context.Context, o Options) (*Guard, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	g := &Guard{opts: o, metrics: newMetrics(o.Locks.Region(), o.Consumer)}
	if err := o.Locks.Check(g.lockOf("key")); err != nil {
		return nil, fmt.Errorf("guard: the manager of the locks refuses those of Options.Subject and Options.Lease: %w", err)
	}
	if err := o.Locks.Check(g.retention()); err != nil {
		return nil, fmt.Errorf("guard: the manager of the locks refuses that of Options.Consumer: %w", err)
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

// accepts returns an [*InputError] for an event that cannot be, and the refusal of a policy.
func (g *Guard) accepts(e event) error {
	for field, text := range map[string]string{"key": e.key, "event id": e.id} {
		if !isText(text) {
			return &InputError{field, fmt.Sprintf("is empty, longer than %d bytes, has a zero byte or is not UTF-8; hash what is longer", maxText)}
		}
	}
	if strings.Contains(e.key, "%") || strings.Contains(":"+e.key+":", "::") {
		return &InputError{"key", "has a % or nothing between two colons, which the lock would write otherwise; replace them"}
	}
	err := g.opts.Locks.Check(g.lockOf(e.key))
	if wrong, ok := errors.AsType[*locks.DescriptorError](err); ok {
		return &InputError{"key", wrong.Reason}
	}
	return err
}

func (g *Guard) lockOf(key string) locks.Descriptor {
	return locks.Descriptor{Subject: g.opts.Subject, Predicate: "processing", Resources: strings.Split(key, ":"), TTL: g.opts.Lease}
}

// IdempotencyKey is a UUID of the consumer and the event, the same in every attempt, for
// systems that a handler calls. It is empty for a context that is no handler's.
func IdempotencyKey(ctx context.Context) string { return attempt.Of(ctx).IdempotencyKey }

// FenceOf is the fencing token of the handler's lock, for systems that compare it: the greatest
// one is the latest. It is 0 for a context that is no handler's.
func FenceOf(ctx context.Context) int64 { return attempt.Of(ctx).Fence }

// space begins the names whose UUIDs are idempotency keys.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/observerd/observerd/guard"))

// idOf is the idempotency key of an event.
func (g *Guard) idOf(e event) string {
	return uuid.NewSHA1(space, []byte(g.opts.Consumer+"\x00"+e.id)).String()
}

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
	if err := g.accepts(e); err != nil {
		return "", err
	}
	if attempt.Within(ctx, g.idOf(e)) { // It would commit the event without what its handler does.
		return "", &InputError{"event id", "is that of the event whose handler calls this; give the parts of an event ids of their own"}
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
	outcome, err := g.apply(l, e, f, began.Add(g.opts.Wait))
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

// apply does the work in one transaction. It waits for that of an earlier holder until then.
func (g *Guard) apply(l *locks.Lease, e event, f Handler, until time.Time) (Outcome, error) {
	t, err := g.begin(l.Context(), until)
	if err != nil {
		return "", err
	}
	defer t.end()
	applied, err := t.take(g, e, until)
	if err != nil {
		return "", err
	}
	if applied {
		return DuplicateInbox, nil
	}
	if err := g.handle(t, l, e, f); err != nil {
		return "", t.explain(err)
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
	err = f(attempt.With(t.ctx, attempt.Attempt{IdempotencyKey: g.idOf(e), Fence: l.Fence()}), t.Tx)
	if cause := context.Cause(t.ctx); cause != nil && !errors.Is(err, ErrPermanent) {
		return errors.Join(dbError(t.ctx, cause), err)
	}
	if t.Pgx != nil && t.Pgx.Conn().PgConn().IsBusy() {
		return errors.Join(errOpenRows, err)
	}
	return err
}

// explain returns the error of a handler with what is wrong with its transaction: it was ended,
// or its connection is gone.
func (t *transaction) explain(err error) error {
	if t.ctx.Err() != nil || errors.Is(err, errOpenRows) {
		return err
	}
	if why := t.same(); errors.Is(why, ErrTxEnded) || errors.Is(why, ErrUnavailable) && !errors.Is(err, ErrPermanent) {
		return errors.Join(why, err)
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.Context()), g.opts.Lease)
	defer cancel()
	return g.findOut(ctx, e, err)
}

// findOut looks for an event whose commit was not answered, once the transaction has ended: it
// holds the key until then, wherever its connection is. What a look fails with says nothing of
// the event, so it is not wrapped.
func (g *Guard) findOut(ctx context.Context, e event, why error) (Outcome, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		applied, err := g.look(ctx, e)
		switch {
		case err == nil && applied:
			return Applied, nil
		case err == nil:
			return "", fmt.Errorf("%w: the commit has failed: %s", ErrLost, why.Error())
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %s; %s", ErrUnknown, why.Error(), err.Error())
		case <-time.After(pause):
		}
	}
}

func (g *Guard) look(ctx context.Context, e event) (applied bool, err error) {
	until := time.Now().Add(g.opts.Wait)
	t, err := g.begin(ctx, until)
	if err != nil {
		return false, err
	}
	defer t.end()
	return t.take(g, e, until)
}

func (g *Guard) hasSeen(ctx context.Context, e event) (known bool) {
	g.askSeen(ctx, e, func(ctx context.Context) (err error) {
		known, err = g.opts.Seen.Has(ctx, g.idOf(e))
		return err
	})
	return known
}

func (g *Guard) remember(ctx context.Context, e event) {
	g.askSeen(context.WithoutCancel(ctx), e, func(ctx context.Context) error {
		return g.opts.Seen.Add(ctx, g.idOf(e), min(seenFor, g.opts.Keep))
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

func (g *Guard) retention() locks.Descriptor { return locks.Name("guard-retention:" + g.opts.Consumer) }

// sweep deletes what is older than Options.Keep, at most once a minute, and in one process at a
// time.
func (g *Guard) sweep(ctx context.Context) {
	last, now := g.swept.Load(), time.Now()
	if now.UnixNano()-last < int64(sweepEvery) || !g.swept.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	err := g.opts.Locks.Do(limited, g.retention(), func(ctx context.Context, _ *locks.Lease) error {
		for {
			if rows, err := g.sweepOnce(ctx); err != nil || rows < sweepRows {
				return err
			}
		}
	}, locks.FailFast())
	if err != nil && !errors.Is(err, locks.ErrHeld) && ctx.Err() == nil {
		g.opts.Logger.Warn("Old events not deleted; tried again in a minute", "consumer", g.opts.Consumer, "err", err)
	}
}
