package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

const (
	// askEvery is how long an answer of the coordination database about an
	// account is believed: the logons of one process come in crowds.
	askEvery = 5 * time.Second
	// storeTimeout bounds a statement in the coordination database.
	storeTimeout = 5 * time.Second
	// maxLogon is how long a logon of which nothing is heard holds up others: longer
	// than any source waits for its database, so one that hangs ends itself before. A
	// database may take its time to say that a password is wrong.
	maxLogon = 15 * time.Second
	// iterations make guessing a password from a stolen row slow; they are paid only
	// while a row stands.
	iterations = 100_000
)

// Accounts is the memory of refused accounts that all nodes share; [lockdb.Accounts]
// is one.
type Accounts interface {
	Account(ctx context.Context, id string) ([]lockdb.Account, error)
	RefuseAccount(ctx context.Context, a lockdb.Account) error
}

// credentialGate is the gate of one account and secret, see [source.Gate]. A refusal
// by the foreign database is kept in the coordination database, so that every
// node leaves the account alone: each of them trying a wrong password is what
// locks an account. It is safe for concurrent use.
type credentialGate struct {
	id, secret string
	options    Options
	rounds     int // of a digest; 0 means iterations

	// turn has a value while a logon is tried.
	turn chan struct{}

	mu sync.Mutex
	// asked is when rows was read last: a refusal for each secret.
	asked time.Time
	rows  []lockdb.Account
	// unsaid is a refusal that could not be written yet.
	unsaid *observer.Fault
	// digests are those of the secret by their salts. An account has one as a rule.
	digests map[string][]byte
}

func newGate(id, secret string, o Options) *credentialGate {
	return &credentialGate{
		id: id, secret: secret, options: o, turn: make(chan struct{}, 1), digests: make(map[string][]byte),
	}
}

// Allow implements [source.Gate]. One logon at a time is let through, so that a
// wrong password is tried once and not by every connection of the pool, also
// where it was right until now.
func (g *credentialGate) Allow(ctx context.Context) (ended func(error), err error) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	leave := sync.OnceFunc(func() { <-g.turn })
	if err := g.Refusal(ctx); err != nil {
		leave()
		return nil, err
	}
	late := time.AfterFunc(maxLogon, leave)
	return func(err error) {
		if f, ok := errors.AsType[*observer.Fault](err); ok && f.Class == observer.ClassCredentials {
			g.refused(ctx, &observer.Fault{Class: f.Class, Code: f.Code, Err: err})
		}
		late.Stop()
		leave()
	}, nil
}

// Refusal returns why no logon may be tried now; nil when one may. It tries none. A
// refusal that could not be written is then: it must not be written after somebody
// has fixed the account and said so.
func (g *credentialGate) Refusal(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fault := g.unsaid; fault != nil {
		g.tell(ctx)
		return fault
	}
	if err := g.ask(ctx); err != nil && !g.options.Lenient {
		return &observer.Fault{Class: observer.ClassUnknown, Err: fmt.Errorf(
			"the account %s is not tried while nobody can say whether it was refused: %w", g.id, err)}
	}
	for _, row := range g.rows {
		if !bytes.Equal(g.digest(row.Salt), row.Digest) {
			continue
		}
		return &observer.Fault{Class: observer.ClassCredentials, Code: row.Code(), Err: fmt.Errorf(
			"the account %s was refused (%s; node %s, at %s) and is not tried any more; use the right password and restart, or 'observerd observers resume' one of its observers",
			g.id, row.Reason, row.Node, row.RefusedAt.UTC().Format(time.RFC3339))}
	}
	return nil
}

// ask reads the rows of the account, unless that was done a moment ago. An error
// leaves what was known.
func (g *credentialGate) ask(ctx context.Context) error {
	if g.options.Accounts == nil || !g.asked.IsZero() && time.Since(g.asked) < askEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, err := g.options.Accounts.Account(ctx, g.id)
	if err != nil {
		return err
	}
	g.rows, g.asked = rows, time.Now()
	return nil
}

// refused notes that the database has refused the account.
func (g *credentialGate) refused(ctx context.Context, why *observer.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unsaid = why
	g.tell(ctx)
}

// tell writes the refusal that was not written yet. The caller holds g.mu.
func (g *credentialGate) tell(ctx context.Context) {
	if g.options.Accounts == nil || g.options.ReadOnly {
		return
	}
	g.asked = time.Time{}
	if err := g.write(context.WithoutCancel(ctx)); err != nil {
		g.options.Logger.Warn("Account is refused, which could not be recorded: other nodes may try it", "account", g.id, "err", err)
		return
	}
	g.options.Logger.Error("Account is refused; no node tries it with this password any more", "account", g.id, "err", g.unsaid)
	g.unsaid, g.asked = nil, time.Time{}
}

// write notes the refusal with the salt that the account has already, if any. The time
// to make the digest, on a host that is busy, is not held against the database.
func (g *credentialGate) write(ctx context.Context) error {
	if err := g.ask(ctx); err != nil {
		return err
	}
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // It never fails.
	if len(g.rows) > 0 {
		salt = g.rows[0].Salt
	}
	reason := g.unsaid.Error()
	if code := g.unsaid.Code; code != "" && !strings.HasPrefix(reason, code) {
		reason = code + ": " + reason
	}
	a := lockdb.Account{ID: g.id, Node: g.options.Node, Reason: reason, Salt: salt, Digest: g.digest(salt)}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return g.options.Accounts.RefuseAccount(ctx, a)
}

// digest is that of the secret and the salt.
func (g *credentialGate) digest(salt []byte) []byte {
	if g.digests[string(salt)] == nil {
		// Only a mode of FIPS 140 that allows no short salt refuses: ours are
		// long, and one that is not matches nothing.
		g.digests[string(salt)], _ = pbkdf2.Key(sha256.New, g.secret, salt, cmp.Or(g.rounds, iterations), sha256.Size)
	}
	return g.digests[string(salt)]
}
