package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
)

// ReleaseLock ends the lease of a term for an operator, whoever holds it. The error is
// [lock.ErrLost] when the term does not hold the lock.
func (t *Operations) ReleaseLock(ctx context.Context, region, key, term string, by By) error {
	act := Did(by, "release-lock", region+" "+key, term)
	return t.db.InTx(ctx, "release lock "+key, func(tx *sql.Tx) error {
		var client sql.NullString
		err := tx.QueryRowContext(ctx, t.db.SQL(`SELECT client_id FROM int_lock WHERE lock_key = $1 AND region = $2{update}`), rowKey(key), region).Scan(&client)
		if errors.Is(err, sql.ErrNoRows) {
			return lock.ErrLost
		}
		if err != nil {
			return err
		}
		if err := t.endTerm(ctx, tx, rowKey(key), region, term); err != nil {
			return err
		}
		return audit(ctx, t.db, tx, act)
	})
}

// endTerm ends the lease of one who holds the lock alone, or shares it. Its row is locked.
func (t *Operations) endTerm(ctx context.Context, tx *sql.Tx, key, region, term string) error {
	if _, err := tx.ExecContext(ctx, t.db.SQL(reapSQL), key, region, term); err != nil {
		return err
	}
	ended := int64(0)
	for _, text := range []string{
		`DELETE FROM int_lock WHERE lock_key = $1 AND region = $2 AND client_id = $3
		    AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3)`,
		`DELETE FROM int_lock AS l WHERE lock_key = $1 AND region = $2
		    AND EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term = $3) AND ` + vacantSQL,
		`DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3`,
	} {
		result, err := tx.ExecContext(ctx, t.db.SQL(text), key, region, term)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		ended += n
	}
	if ended == 0 {
		return fmt.Errorf("term %s: %w", term, lock.ErrLost)
	}
	return nil
}
