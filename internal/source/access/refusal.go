package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// tell writes the refusal that was not written yet, if there is one. The caller holds
// g.mu.
func (g *credentialGate) tell(ctx context.Context) {
	if g.unsaid == nil || g.store == nil {
		return
	}
	g.asked = time.Time{}
	if err := g.write(context.WithoutCancel(ctx)); err != nil {
		g.log.Warn("Account is refused, which could not be noted: other nodes may try it", "account", g.id, "err", err)
		return
	}
	g.log.Error("Account is refused; no node tries it for a while", "account", g.id, "err", g.unsaid)
	g.unsaid, g.asked = nil, time.Time{}
}

// write notes the refusal, under the digest of those before if there were any:
// then it counts. The time to make that, on a host that is busy, is not held
// against the database.
func (g *credentialGate) write(ctx context.Context) error {
	if err := g.ask(ctx); err != nil {
		return err
	}
	a := lockdb.Account{ID: g.id, Node: g.node, Reason: worded(g.unsaid), Salt: g.salt()}
	a.Digest = g.secret.digest(a.Salt)
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return g.store.RefuseAccount(ctx, a, observer.ClassCredentials.Pause(1))
}

// salt is that of the refusals of this secret or, for its first one, that which
// the account has already.
func (g *credentialGate) salt() []byte {
	if row, known := g.secret.find(g.rows); known {
		return row.Salt
	}
	if len(g.rows) > 0 {
		return g.rows[0].Salt
	}
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // It never fails.
	return salt
}

// worded is the reason of a refusal, which begins with the database's code.
func worded(f *observer.Fault) string {
	text := f.Error()
	if f.Code == "" || strings.HasPrefix(text, f.Code) {
		return text
	}
	return f.Code + ": " + text
}

// iterations make guessing a password from a stolen row slow; they are paid only
// while a row stands.
const iterations = 100_000

// digester makes digests of a secret. It is not safe for concurrent use.
type digester struct {
	secret string
	// rounds are the iterations; 0 means iterations.
	rounds int
	// done has the digests by their salts. An account has one salt as a rule.
	done map[string][]byte
}

func (d *digester) digest(salt []byte) []byte {
	if key, ok := d.done[string(salt)]; ok {
		return key
	}
	key, err := pbkdf2.Key(sha256.New, d.secret, salt, cmp.Or(d.rounds, iterations), sha256.Size)
	if err != nil {
		// Only a mode of FIPS 140 that allows no short salt refuses: ours are
		// long, and one that is not matches nothing.
		return nil
	}
	if d.done == nil {
		d.done = make(map[string][]byte)
	}
	d.done[string(salt)] = key
	return key
}

// made reports whether the row's digest is of this secret.
func (d *digester) made(row lockdb.Account) bool {
	digest := d.digest(row.Salt)
	return digest != nil && bytes.Equal(digest, row.Digest)
}

// find returns the refusal of this secret; false when there is none. Two nodes
// that were the first to be refused at one instant may have made two of it, of
// which the one with more failures counts, and the later pause.
func (d *digester) find(rows []lockdb.Account) (mine lockdb.Account, found bool) {
	for _, row := range rows {
		if !d.made(row) {
			continue
		}
		until := mine.RetryAt
		if row.Failures > mine.Failures {
			mine = row
		}
		if row.RetryAt.After(until) {
			until = row.RetryAt
		}
		mine.RetryAt, found = until, true
	}
	return mine, found
}
