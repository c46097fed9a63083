package lockdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Account is an account that a source has refused with one secret: no node may
// log on with both. Each refused secret has its own.
type Account struct {
	// ID tells accounts apart. Node met the refusal, Reason is what it was
	// told, which begins with the database's code if it has one, without a secret.
	ID, Node, Reason string
	// Digest is of Salt and the secret that was refused. Both are required. All
	// digests of an account should have one salt: it costs much to make one.
	Salt, Digest []byte
	// RefusedAt is when this secret was refused, by the database's clock.
	RefusedAt time.Time
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
type Accounts DB

// Accounts returns the refused accounts.
func (db *DB) Accounts() *Accounts { return (*Accounts)(db) }

// Account returns the refusals of an account, one for each secret, the oldest first;
// none when it was not refused.
func (t *Accounts) Account(ctx context.Context, id string) ([]Account, error) {
	return sqldb.All(ctx, t.db, "read the refused accounts", t.sql.SQL().Account.Account, func(scan sqldb.Scan, a *Account) error {
		return scan(&a.ID, &a.Node, &a.Reason, &a.Salt, &a.Digest, sqldb.ScanTime(&a.RefusedAt))
	}, id)
}

// RefuseAccount notes a refusal, until [Operations.Resume]: no node tries that
// secret again. One of a secret that was refused before, and those of others, stay as
// they are. Of a the time is the database's to say.
func (t *Accounts) RefuseAccount(ctx context.Context, a Account) error {
	_, err := t.db.Exec(ctx, fmt.Sprintf("note that account %s was refused", a.ID), t.sql.SQL().Account.RefuseAccount,
		a.ID, a.Salt, a.Digest, a.Node, sqldb.Storable(a.Reason))
	return err
}
