package lockdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Account is an account that a source has refused with one secret: no node may
// log on with both before RetryAt. Each refused secret has its own.
type Account struct {
	// ID tells accounts apart. Node met the last refusal, Reason is what it was
	// told, which begins with the database's code if it has one, without a secret.
	ID, Node, Reason string
	// Digest is of Salt and the secret that was refused. Both are required. All
	// digests of an account should have one salt: it costs much to make one.
	Salt, Digest []byte
	// Failures counts the refusals of this secret, from 1. Those before RetryAt
	// were of nodes that had not heard of the first yet, and count as one with it.
	Failures int
	// RefusedAt is when this secret was refused first, RetryAt when one node may
	// try it again, Now when the row was read: all by the database's clock.
	RefusedAt, RetryAt, Now time.Time
}

// Code is the database's own code of the refusal; empty when it has none.
func (a Account) Code() string {
	code, _, _ := strings.Cut(a.Reason, ":")
	if strings.ContainsRune(code, ' ') {
		return ""
	}
	return code
}

// Accounts remembers the accounts that a source has refused (obs_account).
type Accounts struct{ db *sqldb.DB }

// Accounts returns the refused accounts.
func (db *DB) Accounts() *Accounts { return &Accounts{db.db} }

// Account returns the refusals of an account, one for each secret, the oldest first;
// none when it was not refused.
func (t *Accounts) Account(ctx context.Context, id string) ([]Account, error) {
	return t.accounts(ctx, ` WHERE account = $1`, id)
}

// accounts returns the refused accounts of a condition, sorted.
func (t *Accounts) accounts(ctx context.Context, where string, args ...any) ([]Account, error) {
	var all []Account
	err := t.db.Query(ctx, "read the refused accounts", `
		SELECT account, node, reason, salt, digest, failures, refused_at, retry_at, {now}
		  FROM obs_account`+where+`
		 ORDER BY account, refused_at, digest`,
		func(scan func(...any) error) error {
			var a Account
			err := scan(&a.ID, &a.Node, &a.Reason, &a.Salt, &a.Digest, &a.Failures,
				sqldb.ScanTime(&a.RefusedAt), sqldb.ScanTime(&a.RetryAt), sqldb.ScanTime(&a.Now))
			all = append(all, a)
			return err
		}, args...)
	return all, err
}

// RefuseAccount notes a refusal, and no node tries that secret again before the
// pause is over. Refusals of one digest count once for each pause that was over;
// those of another are left as they are. Of a the times and the count are the
// database's to say.
func (t *Accounts) RefuseAccount(ctx context.Context, a Account, pause time.Duration) error {
	_, err := t.db.Exec(ctx, fmt.Sprintf("note that account %s was refused", a.ID), `
		INSERT INTO obs_account AS o (account, salt, digest, failures, refused_at, retry_at, node, reason)
		VALUES ($1, $2, $3, 1, {now}, {in $4}, $5, $6)
		ON CONFLICT (account, digest) DO UPDATE
		   SET failures = CASE WHEN o.retry_at <= excluded.refused_at THEN o.failures + 1 ELSE o.failures END,
		       salt = excluded.salt, retry_at = excluded.retry_at, node = excluded.node, reason = excluded.reason`,
		a.ID, a.Salt, a.Digest, pause.Seconds(), a.Node, sqldb.Storable(a.Reason))
	return err
}

// AcceptAccount forgets the refusal of one secret of an account: a logon with it
// went well. One that was never refused is no error, but costs a write: ask
// [Accounts.Account] first. Refusals of other secrets stay: nodes that have not been
// given the new one would try theirs once more.
func (t *Accounts) AcceptAccount(ctx context.Context, id string, digest []byte) error {
	_, err := t.db.Exec(ctx, fmt.Sprintf("forget a refusal of account %s", id),
		`DELETE FROM obs_account WHERE account = $1 AND digest = $2`, id, digest)
	return err
}

// ForgetAccount forgets all refusals of an account: every node may try the secret
// that it has. It reports false when there was none.
func (t *Accounts) ForgetAccount(ctx context.Context, id string) (bool, error) {
	n, err := t.db.Exec(ctx, fmt.Sprintf("forget the refusals of account %s", id),
		`DELETE FROM obs_account WHERE account = $1`, id)
	return n > 0, err
}
