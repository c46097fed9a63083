package lockdb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

const turnSQL = `
SELECT {now}, s.turn_at, l.client_id, o.node, CASE WHEN o.boot_term = o.term THEN o.boot_id END, {future}
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
  LEFT JOIN int_lock l ON l.lock_key = $2 AND l.region = $3 AND {unexpired}
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id`

// Turn returns what is known of the type's turns, and whether someone holds
// the lock of that request. It goes where polls go: there are as many looks as
// types are due, and they must not stand before a release; and while polls keep
// all connections busy, nobody has to know whose turn it is.
func (db *DB) Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error) {
	var s turn.State
	var term, holder, boot, future text
	query := db.d.sql(db.table.sql(turnSQL, "l", "$4"))
	err := db.read.QueryRowContext(ctx, query, typ, r.Key, r.Region, r.TTL.Seconds()).
		Scan(instant{&s.Now}, instant{&s.At}, &term, &holder, &boot, &future)
	if err != nil {
		return turn.State{}, fmt.Errorf("read the turn of %s: %w", typ, db.told(db.read, err))
	}
	s.Held, s.Holder, s.HolderBoot = term != "", string(holder), string(boot)
	db.tellFuture(r, unpadded(string(term)), string(future), s.Now)
	return s, nil
}

// guarded is a subquery that is true while the lease of the grant lives, and
// keeps it from being stolen until the transaction ends. Its parameters are
// the first four.
const guarded = `EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND {alive}{share})`

// guardedSQL fills {guard} into a statement that must write nothing once the
// lease has ended. Its own parameters follow from $5.
func (db *DB) guardedSQL(text string) string {
	return db.d.sql(db.table.sql(strings.ReplaceAll(text, "{guard}", guarded), "l", "$4"))
}

// guardedArgs are the parameters of such a statement.
func guardedArgs(g lock.Grant, args ...any) []any {
	return append([]any{g.Key, g.Region, g.Term, g.TTL.Seconds()}, args...)
}

// wrote reads the result of such a statement: no row means lock.ErrFenced.
func wrote(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = lock.ErrFenced
	}
	return err
}

// TakeTurn notes that a turn was taken. It is refused with lock.ErrFenced when
// the lease has ended, or a later turn was taken. An instant in the future,
// left by a clock that went back, is overwritten.
func (db *DB) TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error {
	err := wrote(db.main.ExecContext(ctx, db.guardedSQL(takeTurnSQL), guardedArgs(g, t.Type, db.d.bindTime(t.At), t.Node,
		db.d.bindTime(t.Started), db.d.bindTime(t.Finished), string(t.Outcome))...))
	if err != nil {
		return fmt.Errorf("take the turn of %s: %w", t.Type, db.told(db.main, err))
	}
	return nil
}

const takeTurnSQL = `
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT $5, $6, $7, $8, $9, $10 WHERE {guard}
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > {now}`
