package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// bareOrdersSQL reads what a poll reads, in its order.
const bareOrdersSQL = "SELECT id, customer, status, %s, note, updated_at FROM %s ORDER BY updated_at, id"

// bareOrder is a row as a bare loop reads it.
type bareOrder struct {
	id                            int64
	customer, status, total, note string
	updatedAt                     time.Time
}

func (o *bareOrder) targets() []any {
	return []any{&o.id, &o.customer, &o.status, &o.total, &o.note, &o.updatedAt}
}

// loopSQL is the bare loop over database/sql, on one connection.
func loopSQL(ctx context.Context, db *sql.DB, table string, watch *stopwatch) (n int64, err error) {
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		return 0, err
	}
	watch.start()
	defer watch.stop()
	rows, err := db.QueryContext(ctx, fmt.Sprintf(bareOrdersSQL, "total", table))
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	var o bareOrder
	targets := o.targets()
	for ; rows.Next(); n++ {
		if err := rows.Scan(targets...); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}
