package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/observerd/observerd/internal/fn"
)

// lockTable is INT_LOCK as PostgreSQL's catalogue has it, as far as two nodes
// could be misled by it.
type lockTable struct {
	// Name is that of the table with its schema, as a statement writes it.
	Name string `json:"name"`
	// Kind is pg_class.relkind: r for a table, p for a partitioned one.
	Kind    string       `json:"kind"`
	Columns []lockColumn `json:"columns"`
	// Unique are the columns of each key that an upsert can name, sorted.
	Unique [][]string `json:"unique"`
}

type lockColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Size is the most characters of a text, or the decimals of a timestamp's
	// seconds; -1 is without a limit.
	Size     int  `json:"size"`
	Nullable bool `json:"nullable"`
	// Default is the expression of a default; empty: none.
	Default string `json:"default"`
}

// catalogued goes where leases go, so that a busy pool holds up no acquisition. There is no
// row for a table that is not there.
func (db *DB) catalogued(ctx context.Context) (t lockTable, err error) {
	var text []byte
	if _, err = db.postgres.pooler.place.look(ctx, db.Lease); err == nil {
		err = db.Lease.QueryRowContext(ctx, db.sql.SQL().Catalogue).Scan(&text)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, fmt.Errorf("look at the table INT_LOCK: %w", err)
	}
	return t, nil
}

func (t lockTable) column(name string) (lockColumn, bool) {
	return fn.Find(t.Columns, func(c lockColumn) bool { return c.Name == name })
}

// WarnOfStrangers logs the triggers and rules of other roles on INT_LOCK, whose code
// runs with the rights of this process, and the functions that may miss a search_path.
// Call it once at the start of a node. SQLite has no roles.
func (db *DB) WarnOfStrangers(ctx context.Context) error {
	if db.postgres == nil {
		return nil
	}
	read := func(text string) ([]string, error) {
		return All(ctx, db, "look at what hangs on INT_LOCK", text, func(scan Scan, name *string) error { return scan(name) })
	}
	names, err := read(db.sql.SQL().Strangers)
	functions, failed := read(db.sql.SQL().Pathless)
	if len(names) > 0 {
		db.log.Warn("Code of other roles on INT_LOCK runs with the rights of this node; drop what is not needed", "code", names)
	}
	if len(functions) > 0 {
		db.log.Warn("Triggers of INT_LOCK call functions that have no search_path of their own, and sessions of this node have none: "+
			"where one names no schema, no lock can be taken; ALTER FUNCTION … SET search_path = …", "functions", functions)
	}
	return errors.Join(err, failed)
}

// warnOfOwner logs that INT_LOCK was there before our first migration, and is
// another's.
func (db *DB) warnOfOwner(ctx context.Context) error {
	if db.postgres == nil {
		return nil
	}
	var owner string
	err := db.Query(ctx, "look at the owner of INT_LOCK", db.sql.SQL().Owner,
		func(scan Scan) error { return scan(&owner) })
	if err == nil && owner != "" {
		db.log.Warn("INT_LOCK is there already and belongs to another role, which can run code with the rights of the nodes "+
			"and take their locks; if it is not that of the Java nodes, name another schema in database.url (…?search_path=NAME)", "owner", owner)
	}
	return err
}

// lockTableLook is when INT_LOCK was looked at.
type lockTableLook struct {
	// looked is when the catalogue was last found in order, in Unix nanoseconds;
	// 0 when it was not. looking lets those wait who come during a look.
	looked  atomic.Int64
	looking singleflight.Group
}

// relook is how long a look at the catalogue counts. A column that may be NULL,
// or has a default, can be added without any statement of ours failing.
const relook = 10 * time.Second

// Fits looks at the catalogue again when the last look is old. The error is
// [ErrMixedTable] when INT_LOCK has become a table that cannot be shared.
func (db *DB) Fits(ctx context.Context) error {
	if time.Duration(time.Now().UnixNano()-db.table.looked.Load()).Abs() < relook {
		return nil
	}
	return db.Recognise(ctx)
}

// Recognise looks in the catalogue which generation of Spring's table INT_LOCK is.
// The error is [ErrMixedTable] for one that nodes of both generations could use
// without noticing each other. Until a look has found the table in order, no caller
// goes on by an earlier one. A look that ended with the context of another caller has
// found nothing.
func (db *DB) Recognise(ctx context.Context) error {
	if db.readLockTable == nil {
		return nil
	}
	for {
		own := false
		_, err, _ := db.table.looking.Do("", func() (any, error) {
			own = true
			err := db.recognise(ctx)
			if err != nil {
				db.table.looked.Store(0)
			}
			return nil, err
		})
		interrupted := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		if own || !interrupted || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) recognise(ctx context.Context) error {
	t, err := db.readLockTable(ctx)
	if err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	_, perRow := t.column("expired_after")
	db.renderings.change(func(r *Rendering) { r.perRow = perRow })
	db.table.looked.Store(time.Now().UnixNano())
	return nil
}
