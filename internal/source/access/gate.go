package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

const (
	// MaxProbes is how often a password that was refused is tried again: a database
	// says that it is wrong also while it is moved or restored. A locked or expired
	// account is tried without end: that changes over there.
	MaxProbes = 3
	// askEvery is how long an answer of the coordination database about an
	// account is believed: the logons of one process come in crowds.
	askEvery = 5 * time.Second
	// probeSpread keeps the nodes from trying all at one instant.
	probeSpread = time.Minute
	// storeTimeout bounds a statement in the coordination database.
	storeTimeout = 5 * time.Second
	// otherSecretFor is how long a refusal of another secret is kept after this
	// node's secret was accepted: as long as it stands, a node that still has
	// the old one leaves the account alone.
	otherSecretFor = 24 * time.Hour
)

// Accounts is the memory of refused accounts that all nodes share; lockdb.DB is one.
type Accounts interface {
	Account(ctx context.Context, id string) ([]lockdb.Account, error)
	RefuseAccount(ctx context.Context, a lockdb.Account, pause time.Duration) error
	AcceptAccount(ctx context.Context, id string, digest []byte) error
}

// GivenUp reports whether no node tries the secret of a refusal any more, also after
// RetryAt. wrongPassword is that of [Options].
func GivenUp(a lockdb.Account, wrongPassword func(code string) bool) bool {
	return a.Failures > MaxProbes && wrongPassword(a.Code())
}

// credentialGate is the gate of one account and secret, see [source.Gate]. A refusal
// by the foreign database is kept in the coordination database, so that every
// node leaves the account alone: each of them trying a wrong password is what
// locks an account. It is kept in memory too, for as long as it could not be
// written. A gate is safe for concurrent use.
type credentialGate struct {
	id, node string
	secret   digester
	store    Accounts // nil: none to be asked
	lenient  bool     // see [Options]
	log      *slog.Logger
	delay    time.Duration // of this node's probes
	// wrongPassword is that of [Options].
	wrongPassword func(code string) bool

	queue logonQueue

	mu sync.Mutex
	// proven says that the last logon of this process went well.
	proven bool
	// asked is when rows was read last: a refusal for each secret.
	asked time.Time
	rows  []lockdb.Account
	// unsaid is a refusal that could not be written yet.
	unsaid *observer.Fault
}

func newGate(id, secret string, o Options) *credentialGate {
	return &credentialGate{
		id: id, node: o.Node, secret: digester{secret: secret}, store: o.Accounts, lenient: o.Lenient, log: o.Logger,
		delay: rand.N(probeSpread), wrongPassword: o.WrongPassword,
	}
}

// Allow implements [source.Gate]. One logon at a time is let through, so that a
// wrong password is tried once and not by every connection of the pool, also
// where it was right until now.
func (g *credentialGate) Allow(ctx context.Context) error {
	if err := g.queue.enter(ctx, g.patience); err != nil {
		return err
	}
	err := g.verdict(ctx)
	if err != nil {
		g.queue.leave(callOf(ctx))
	}
	return err
}

// patience is how long a logon counts as being tried of which nothing is heard;
// alive says that somebody still waits for it.
func (g *credentialGate) patience(alive bool) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proven && !alive {
		return provenFlight
	}
	return maxFlight
}

// verdict returns nil when a logon may be tried now.
func (g *credentialGate) verdict(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tell(ctx); g.unsaid != nil {
		return g.unsaid
	}
	if err := g.ask(ctx); err != nil && !g.proven && !g.lenient {
		return &observer.Fault{Class: observer.ClassUnknown, Err: fmt.Errorf(
			"the account %s is not tried while nobody can say whether it was refused: %w", g.id, err)}
	}
	if row, stands := g.standing(); stands {
		return g.refusal(row)
	}
	return nil
}

// ask reads the row of the account, unless that was done a moment ago. An error
// leaves what was known.
func (g *credentialGate) ask(ctx context.Context) error {
	if g.store == nil || !g.asked.IsZero() && time.Since(g.asked) < askEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, err := g.store.Account(ctx, g.id)
	if err != nil {
		return err
	}
	g.rows, g.asked = rows, time.Now()
	return nil
}

// Standing reports whether the account is refused now, without a logon. A refusal
// that could not be written is then: it must not be written after somebody has
// fixed the account and said so.
func (g *credentialGate) Standing(ctx context.Context) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(ctx)
	if err := g.ask(ctx); err != nil {
		return false, err
	}
	_, stands := g.standing()
	return g.unsaid != nil || stands, nil
}

// Settle says that a call has ended; failed, that its source could not do it. A
// logon of that call has failed with it, those of others go on. It is for logons
// of which the source tells nothing: one that was given up with its call, and
// one that has failed in a source that leaves that to the call.
func (g *credentialGate) Settle(c *call, failed bool) {
	g.queue.abandon(c)
	if failed {
		g.queue.leave(c)
	}
}

// standing returns the refusal of this secret, and whether it forbids a logon. Its
// clock is that of the moment when it was read.
func (g *credentialGate) standing() (row lockdb.Account, stands bool) {
	row, known := g.secret.find(g.rows)
	now := row.Now.Add(time.Since(g.asked))
	return row, known && (GivenUp(row, g.wrongPassword) || now.Before(row.RetryAt.Add(g.delay)))
}

// refusal says what is known of it, and what to do.
func (g *credentialGate) refusal(row lockdb.Account) error {
	until := "until " + row.RetryAt.UTC().Format(time.RFC3339)
	if GivenUp(row, g.wrongPassword) {
		until = fmt.Sprintf("any more, after %d times", row.Failures)
	}
	return &observer.Fault{Class: observer.ClassCredentials, Code: row.Code(), Err: fmt.Errorf(
		"the account %s was refused (%s; node %s, first at %s) and is not tried %s; write the right password and restart, or 'observerd observers resume' one of its observers",
		g.id, row.Reason, row.Node, row.RefusedAt.UTC().Format(time.RFC3339), until)}
}

// Refused implements [source.Gate].
func (g *credentialGate) Refused(ctx context.Context, fault error) {
	defer g.queue.leave(callOf(ctx))
	refused := &observer.Fault{Class: observer.ClassCredentials, Err: fault}
	var f *observer.Fault
	if errors.As(fault, &f) {
		refused.Code = f.Code
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proven, g.unsaid = false, refused
	g.tell(ctx)
}

// Accepted implements [source.Gate]. A refusal of this secret is over; of
// another one, it is when nobody can have that any more.
func (g *credentialGate) Accepted(ctx context.Context) {
	defer g.queue.leave(callOf(ctx))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proven, g.unsaid = true, nil
	over := func(row lockdb.Account) bool {
		return g.secret.made(row) || row.Now.Sub(row.RefusedAt) >= otherSecretFor
	}
	if !slices.ContainsFunc(g.rows, over) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for _, row := range g.rows {
		if !over(row) {
			continue
		}
		if err := g.store.AcceptAccount(ctx, g.id, row.Digest); err != nil {
			g.log.Warn("Account is accepted again, which could not be noted", "account", g.id, "err", err)
			return
		}
	}
	g.rows = slices.DeleteFunc(g.rows, over)
	g.log.Info("Account is accepted again", "account", g.id)
}

// Failed implements [source.Gate]. What is known of the account stays.
func (g *credentialGate) Failed(ctx context.Context) { g.queue.leave(callOf(ctx)) }
