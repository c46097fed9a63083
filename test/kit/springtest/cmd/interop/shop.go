package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const sourceSQL = `
CREATE TABLE orders (order_id TEXT PRIMARY KEY, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
CREATE TABLE inventory (sku TEXT PRIMARY KEY, quantity INTEGER NOT NULL);
CREATE TABLE wes_tasks (task_id TEXT PRIMARY KEY, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
INSERT INTO inventory SELECT 'sku-' || n, n FROM generate_series(1, 20) AS n;
INSERT INTO wes_tasks SELECT 'task-' || n, 'NEW' FROM generate_series(1, 20) AS n`

var observers = []string{
	`{id: order, type: order, source: shop, table: orders, key: order_id, timestamp: updated_at}`,
	`{id: inventory, type: inventory, source: shop, table: inventory, key: sku}`,
	`{id: wes, type: wes, source: shop, table: wes_tasks, key: task_id, timestamp: updated_at}`,
}

// shop makes the database that the daemons poll.
func (t *trial) shop(ctx context.Context) (*sql.DB, string, error) {
	name := t.generation.String() + "_shop"
	if _, err := t.witness.db.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return nil, "", fmt.Errorf("make the source: %w", err)
	}
	url := t.server.URL(name)
	shop, err := sql.Open("pgx", url)
	if err != nil {
		return nil, "", err
	}
	if _, err := shop.ExecContext(ctx, sourceSQL); err != nil {
		return nil, "", errors.Join(fmt.Errorf("fill the source: %w", err), shop.Close())
	}
	return shop, url, nil
}

// write makes new orders until the end, and returns how many.
func write(ctx context.Context, shop *sql.DB, end time.Time) (n int, err error) {
	for time.Now().Before(end) && pause(ctx, 50*time.Millisecond) {
		_, err := shop.ExecContext(ctx, `INSERT INTO orders (order_id) VALUES ($1)`, fmt.Sprintf("order-%d", n))
		if err != nil {
			return n, fmt.Errorf("write an order: %w", err)
		}
		n++
		_, err = shop.ExecContext(ctx, `UPDATE wes_tasks SET status = $1, updated_at = clock_timestamp() WHERE task_id = $2`,
			fmt.Sprint(n), fmt.Sprintf("task-%d", n%20+1))
		if err != nil {
			return n, fmt.Errorf("write a task: %w", err)
		}
	}
	return n, ctx.Err()
}
