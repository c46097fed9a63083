package main

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/jackc/pgx/v5"
)

// diffOrders is the comparison in memory: the second reading of all orders, each of whose
// hashes is compared with that of the first. It has nothing after a restart.
func diffOrders(ctx context.Context, j job, watch *stopwatch) (n int64, err error) {
	conn, err := pgx.Connect(ctx, j.Source)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	known := make(map[string][16]byte)
	if _, err := diffOnce(ctx, conn, known); err != nil {
		return 0, err
	}
	watch.start()
	defer watch.stop()
	return diffOnce(ctx, conn, known)
}

func diffOnce(ctx context.Context, conn *pgx.Conn, known map[string][16]byte) (n int64, err error) {
	rows, err := conn.Query(ctx, "SELECT id, customer, status, total, note, updated_at FROM orders")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var row []byte
	for ; rows.Next(); n++ {
		values := rows.RawValues()
		row = row[:0]
		for _, value := range values {
			row = appendColumn(row, value)
		}
		sum := sha256.Sum256(row)
		if hash := [16]byte(sum[:]); known[string(values[0])] != hash {
			known[string(values[0])] = hash
		}
	}
	return n, rows.Err()
}
