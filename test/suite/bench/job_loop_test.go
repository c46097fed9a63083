package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/testbed"
)

// oddOrdersSQL are orders whose texts, numbers and times are hard to write: all that
// JSON escapes, all lengths of UTF-8, what encoders for HTML escape, and fractions of
// seconds of all lengths.
const oddOrdersSQL = `
INSERT INTO orders
SELECT 1000 + i * 100 + n, chr(1 + n * 7 % 127) || note, note || note || n, total, note || chr(1 + n % 127) || 'end',
       '2026-03-29 01:00:00.123456Z'::timestamptz + n * interval '1 hour' + n % 7 * 111111 * interval '1 microsecond'
  FROM unnest(ARRAY['', 'plain', '"quoted" and \ back', E'\n\r\t\b\f\x01\x1f\x7f', '<a href="x">&</a>', 'é € 😀', E'\u2028\u2029',
                    'just eight', E'1234567\n', E'12345678"', '/slash/']) WITH ORDINALITY AS odd(note, i),
       generate_series(1, 30) AS n,
       LATERAL (SELECT (ARRAY[0, -0.01, 12345678.9, -9999999999.99, 0.10])[1 + n % 5]::numeric(12, 2) AS total) AS t
UNION ALL
SELECT i, 'in time', 'ROUND', 1, '', at
  FROM (VALUES (1, '2026-01-01Z'::timestamptz), (2, '1969-12-31 23:59:59.5Z'), (3, '0001-01-02Z'), (4, '9999-12-31 23:59:59.999999Z'),
               (5, '2026-01-01 00:00:00.1Z')) AS v(i, at)`

// TestLoopStoresWhatThePollStores lets both handle orders that are hard to write,
// in chunks that do not come out even, and compares every column of every row.
func TestLoopStoresWhatThePollStores(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	source := makeTable(t, c, "INSERT INTO orders"+ordersOf(70), oddOrdersSQL)
	stored := map[string][]string{}
	for name, do := range map[string]func(context.Context, job, *stopwatch) (int64, error){"loop": loopBacklog, "poll": pollSource} {
		database, err := c.coordination(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := do(t.Context(), job{Source: source, Database: database, Chunk: 33, Origin: kindPostgres, Table: "orders"}, &stopwatch{})
		if err != nil || n != 70+11*30+5 {
			t.Fatalf("%s handled %d rows: %v", name, n, err)
		}
		stored[name] = allStored(t, database)
	}
	if len(stored["poll"]) != 2*(70+11*30+5) {
		t.Fatalf("the poll has stored %d rows", len(stored["poll"]))
	}
	if len(stored["loop"]) != len(stored["poll"]) {
		t.Fatalf("the loop has stored %d rows, the poll %d", len(stored["loop"]), len(stored["poll"]))
	}
	for i, want := range stored["poll"] {
		if got := stored["loop"][i]; got != want {
			t.Errorf("the loop has stored\n%q\nwhere the poll has\n%q", got, want)
		}
	}
}

// TestLoopEndsWithItsFault breaks either side of the loop in the middle.
func TestLoopEndsWithItsFault(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, test := range map[string]struct{ inSource, inDatabase, fault string }{
		"the source": {
			// The last of many chunks divides by zero: the loop must not wait for it, and keep none of it.
			inSource: `ALTER TABLE orders RENAME TO plain;
				CREATE VIEW orders AS SELECT id, customer, status, total / (1000400 - id) AS total, note, updated_at FROM plain`,
			fault: "division by zero",
		},
		"the database": {
			inDatabase: `ALTER TABLE obs_event ADD CHECK (seq < 60)`,
			fault:      "obs_event_seq_check",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := makeTable(t, c, "INSERT INTO orders"+ordersOf(500), test.inSource)
			database, err := c.coordination(t.Context(), "loop")
			if err != nil {
				t.Fatal(err)
			}
			if err := testbed.Execute(t.Context(), database, test.inDatabase); err != nil {
				t.Fatal(err)
			}
			_, err = loopBacklog(t.Context(), job{Source: source, Database: database, Chunk: 10}, &stopwatch{})
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("the loop ended with %v; want %q", err, test.fault)
			}
		})
	}
}

// allStored are the rows of events and keys as texts, but for the time of logging.
func allStored(t *testing.T, database string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var all []string
	for _, query := range []string{
		`SELECT (stream, seq, event_id, type, subject, version, change, time, data::text)::text FROM obs_event ORDER BY stream, seq`,
		`SELECT o::text FROM obs_observed o ORDER BY stream_id, row_number`,
	} {
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, texts...)
	}
	return all
}
