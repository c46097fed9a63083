package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/testbed"
)

// stream is the observer whose polls are measured.
const stream = "bench-orders"

// ordersColumns make a table as teams have it: rows of about 330 bytes of JSON.
// PostgreSQL reads them, and MariaDB with other types.
const ordersColumns = ` (
  id         bigint PRIMARY KEY,
  customer   text NOT NULL,
  status     text NOT NULL,
  total      numeric(12, 2) NOT NULL,
  note       text NOT NULL,
  updated_at timestamptz NOT NULL
)`

// ordersSQL are the orders. The notes differ in length, so that the rows have
// 240 to 400 bytes.
const ordersSQL = `
SELECT 1000000 + i,
       'customer ' || (i * 7919 %% 50000),
       (ARRAY['NEW', 'RELEASED', 'PICKED', 'SHIPPED'])[1 + i %% 4],
       (i * 31 %% 1000000) / 100.0,
       left(repeat(md5(i::text) || ' ', 9), 120 + (i * 13 %% 160)::int),
       '2026-01-01 00:00:00Z'::timestamptz + i * interval '7 milliseconds'
  FROM generate_series(1::bigint, %d) AS i`

// ordersOf selects so many orders.
func ordersOf(rows int) string { return fmt.Sprintf(ordersSQL, rows) }

// makeOrders makes a source database with that many orders, in a table with the
// index that polling by a timestamp wants.
func (s *suite) makeOrders(ctx context.Context, rows int) (string, error) {
	where, err := s.cluster.database(ctx, "source")
	if err != nil {
		return "", err
	}
	err = testbed.Execute(ctx, where, "CREATE TABLE orders"+ordersColumns, "INSERT INTO orders"+ordersOf(rows),
		`CREATE INDEX orders_updated ON orders (updated_at, id)`, `VACUUM (FREEZE, ANALYZE) orders`)
	if err != nil {
		return "", fmt.Errorf("fill the source with %s rows: %w", strconv.Itoa(rows), err)
	}
	return where, nil
}

// orderSpec describes the poll of a table of orders. A chunk of 0 rows is the default
// size, and no way to detect is [observer.DetectNew].
func orderSpec(table string, detect observer.Detect, chunk int) observer.Spec {
	return observer.Spec{
		Stream: stream, EventType: events.TypeNewOrder, Detect: cmp.Or(detect, observer.DetectNew), ChunkRows: chunk,
		Query: observer.Query{Table: table, Key: []string{"id"}, Timestamp: "updated_at"},
	}
}
