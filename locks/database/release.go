package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// ReleaseLock ends the lease of a term for an operator, whoever holds it. The error is
// [lock.ErrLost] when the term does not hold the lock.
func (p *Provider) ReleaseLock(ctx context.Context, region, key, term string, by lock.By) error {
	act := lockdb.Did(by, "release-lock", region+" "+key, term)
	return p.db.InTx(ctx, "release lock "+key, func(tx *sql.Tx) error {
		var client sql.NullString
		err := tx.QueryRowContext(ctx, p.sql.SQL().LockRow, rowKey(key), region).Scan(&client)
		if errors.Is(err, sql.ErrNoRows) {
			return lock.ErrLost
		}
		if err != nil {
			return err
		}
		if err := p.endTerm(ctx, tx, rowKey(key), region, term); err != nil {
			return err
		}
		return p.node.Audit(ctx, tx, act)
	})
}

// endTerm ends the lease of one who holds the lock alone, or shares it. Its row is locked.
func (p *Provider) endTerm(ctx context.Context, tx *sql.Tx, key, region, term string) error {
	text := p.sql.SQL()
	if _, err := tx.ExecContext(ctx, text.Reap, key, region, term); err != nil {
		return err
	}
	ended := false
	for _, text := range []string{text.EndAlone, text.EndGroup, text.EndHold} {
		err := changeOne(ctx, tx, text, key, region, term)
		if err != nil && !errors.Is(err, lock.ErrLost) {
			return err
		}
		ended = ended || err == nil
	}
	if !ended {
		return fmt.Errorf("term %s: %w", term, lock.ErrLost)
	}
	return nil
}
