package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// book is the coordination database's memory of accounts, by the clock of the
// test.
type book struct {
	mu     sync.Mutex
	rows   []lockdb.Account
	down   error
	takes  time.Duration // to answer
	asked  int
	writes int
}

func newBook() *book { return &book{} }

func (b *book) Account(ctx context.Context, id string) (found []lockdb.Account, err error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	for _, a := range b.rows {
		if a.ID == id {
			found = append(found, a)
		}
	}
	return found, b.down
}

func (b *book) RefuseAccount(ctx context.Context, a lockdb.Account) error {
	if err := b.wait(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return b.down
	}
	b.writes++
	if !slices.ContainsFunc(b.rows, func(old lockdb.Account) bool { return old.ID == a.ID && bytes.Equal(old.Digest, a.Digest) }) {
		a.RefusedAt = time.Now()
		b.rows = append(b.rows, a)
	}
	return nil
}

// wait lets the time of an answer pass.
func (b *book) wait(ctx context.Context) error {
	b.mu.Lock()
	takes := b.takes
	b.mu.Unlock()
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *book) set(f func(*book)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

// vault is the account over there: it knows its password and counts logons.
type vault struct {
	password string
	code     string // of a refusal
	failed   int
}

// logon is what a source does for a new connection. It returns the gate's word,
// or the refusal.
func (v *vault) logon(g *credentialGate) error {
	ctx := context.Background()
	ended, err := g.Allow(ctx)
	if err != nil {
		return err
	}
	if v.code == "" && strings.HasPrefix(g.secret, v.password) {
		ended(nil)
		return nil
	}
	v.failed++
	err = error(&observer.Fault{Class: observer.ClassCredentials, Code: orDefault(v.code, "ORA-01017"), Err: errors.New("logon denied")})
	ended(err)
	return err
}

func orDefault(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func gateOf(b *book, node, secret string) *credentialGate {
	g := newGate("oracle://app@h/svc", secret, Options{Node: node, Accounts: b, Logger: slog.New(slog.DiscardHandler)})
	g.rounds = 100
	return g
}

func isRefusal(err error) bool { return observer.ClassOf(err) == observer.ClassCredentials }
