// Package workload is a source that is written: three tables whose writers do
// what writers of foreign databases do to a poller, and a journal that says
// what they really committed, which is what has to come out.
//
// Each version of a row carries its number n, counted under the row's lock, and
// a trigger notes it in the journal in the same transaction. So the journal
// cannot disagree with the tables, whatever is killed.
package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Streams are the streams of the tables, named as these.
const (
	Orders = "orders" // new: each order once
	Tasks  = "tasks"  // change: each version that was seen
	Stock  = "stock"  // snapshot: changed and gone
)

// Worklist is a view of the tasks, by which they are polled.
const Worklist = "worklist"

// Mark is in each key and each other text of a row, and in nothing else: whatever
// holds it tells of a row.
const Mark = "c4n4ry"

const (
	tasks = 2000
	skus  = 200
)

const schema = `
CREATE TABLE orders (order_id TEXT PRIMARY KEY, n BIGINT NOT NULL, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL);
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, n BIGINT NOT NULL, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL);
CREATE TABLE stock (sku TEXT PRIMARY KEY, n BIGINT NOT NULL, status TEXT NOT NULL);
CREATE INDEX ON orders (updated_at, order_id);
CREATE INDEX ON tasks (updated_at, task_id);
CREATE VIEW worklist AS SELECT * FROM tasks;

CREATE TABLE journal (
  id     BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream TEXT        NOT NULL,
  key    TEXT        NOT NULL,
  n      BIGINT      NOT NULL,
  gone   BOOLEAN     NOT NULL,
  at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
-- The number of a row that comes back goes on where it ended.
CREATE TABLE ended (sku TEXT PRIMARY KEY, n BIGINT NOT NULL);

CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO journal (stream, key, n, gone) VALUES (TG_TABLE_NAME, to_jsonb(OLD) ->> TG_ARGV[0], OLD.n + 1, TRUE);
  ELSE
    INSERT INTO journal (stream, key, n, gone) VALUES (TG_TABLE_NAME, to_jsonb(NEW) ->> TG_ARGV[0], NEW.n, FALSE);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note('order_id');
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION note('task_id');
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stock FOR EACH ROW EXECUTE FUNCTION note('sku');`

// slots is how many rows a shelf has. Of the first, few rows of a chunk change between two
// polls, so that the poll carries them from chunk to chunk.
func slots(number int) int {
	if number == 1 {
		return 2000
	}
	return 3
}

// Shelf names a table, and its stream, a snapshot. They count from 1.
func Shelf(number int) string { return fmt.Sprintf("shelf%03d", number) }

func shelf(number int) []string {
	name := Shelf(number)
	return []string{
		"CREATE TABLE " + name + " (slot TEXT PRIMARY KEY, n BIGINT NOT NULL, status TEXT NOT NULL)",
		"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON " + name + " FOR EACH ROW EXECUTE FUNCTION note('slot')",
		fmt.Sprintf("INSERT INTO %s SELECT '%[2]s-slot-' || i, 1, '%[2]s-full' FROM generate_series(1, %[3]d) i", name, Mark, slots(number)),
	}
}

// Create makes the tables in an empty database, with some tasks and stock in
// them, and that many shelves. Roles named readers may read them, and see the transactions that a
// horizon is made of.
func Create(ctx context.Context, url string, shelves int, readers ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	statements := []string{
		schema,
		fmt.Sprintf(`INSERT INTO tasks SELECT '%[1]s-task-' || lpad(i::text, 5, '0'), 1, '%[1]s-new', now() FROM generate_series(1, %[2]d) i`, Mark, tasks),
		fmt.Sprintf(`INSERT INTO stock SELECT '%[1]s-sku-' || lpad(i::text, 4, '0'), 1, '%[1]s-full' FROM generate_series(1, %[2]d) i`, Mark, skus),
	}
	for i := range shelves {
		statements = append(statements, shelf(i+1)...)
	}
	for _, role := range readers {
		name := pgx.Identifier{role}.Sanitize()
		statements = append(statements, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+name, "GRANT pg_read_all_stats TO "+name)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	return nil
}

// Write is a version of a row that was committed.
type Write struct {
	Stream string
	Key    string
	N      int64
	Gone   bool
	At     time.Time
}

// Writes reads the journal.
func Writes(ctx context.Context, url string) ([]Write, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `SELECT stream, key, n, gone, at FROM journal ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	writes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Write])
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return writes, nil
}
