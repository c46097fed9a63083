package main

import (
	"context"
	"database/sql"
	"fmt"
)

// witnessSQL makes what sees, in the database, who is in the section that a
// lock protects. It knows nothing of locks: a primary key refuses the second of
// two, and a counter that each reads at its beginning and writes at its end
// loses an increment. Readers may meet each other, and nobody else.
const witnessSQL = `
CREATE TABLE interop_section (lock TEXT PRIMARY KEY, holder TEXT NOT NULL);
CREATE TABLE interop_counter (lock TEXT PRIMARY KEY, n BIGINT NOT NULL);
CREATE TABLE interop_history (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lock TEXT NOT NULL, holder TEXT NOT NULL, side TEXT NOT NULL, fence BIGINT NOT NULL,
  entered TIMESTAMPTZ NOT NULL, gone TIMESTAMPTZ, met BOOLEAN NOT NULL);
CREATE INDEX ON interop_history (lock, holder, id);
CREATE TABLE interop_reader (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lock TEXT NOT NULL, entered TIMESTAMPTZ NOT NULL, gone TIMESTAMPTZ, met BOOLEAN NOT NULL);
CREATE INDEX ON interop_reader (lock) WHERE gone IS NULL;

CREATE FUNCTION interop_enter(l TEXT, h TEXT, s TEXT, f BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  alone BOOLEAN;
BEGIN
  INSERT INTO interop_section VALUES (l, h) ON CONFLICT DO NOTHING;
  alone := FOUND AND NOT EXISTS (SELECT 1 FROM interop_reader WHERE lock = l AND gone IS NULL);
  INSERT INTO interop_history (lock, holder, side, fence, entered, met) VALUES (l, h, s, f, clock_timestamp(), NOT alone);
  RETURN (SELECT n FROM interop_counter WHERE lock = l);
END $$;

CREATE FUNCTION interop_leave(l TEXT, h TEXT, count BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  alone BOOLEAN;
BEGIN
  DELETE FROM interop_section WHERE lock = l AND holder = h;
  alone := FOUND;
  UPDATE interop_counter SET n = count WHERE lock = l;
  UPDATE interop_history SET gone = clock_timestamp(), met = met OR NOT alone
   WHERE id = (SELECT max(id) FROM interop_history WHERE lock = l AND holder = h);
END $$;

CREATE FUNCTION interop_read(l TEXT) RETURNS BIGINT LANGUAGE sql AS $$
  INSERT INTO interop_reader (lock, entered, met)
  VALUES (l, clock_timestamp(), EXISTS (SELECT 1 FROM interop_section WHERE lock = l)) RETURNING id
$$;

CREATE FUNCTION interop_unread(r BIGINT) RETURNS VOID LANGUAGE sql AS $$
  UPDATE interop_reader SET gone = clock_timestamp(), met = met OR EXISTS (SELECT 1 FROM interop_section s WHERE s.lock = interop_reader.lock) WHERE id = r
$$`

// witness is our side of it.
type witness struct{ db *sql.DB }

func makeWitness(ctx context.Context, db *sql.DB, locks []string) (witness, error) {
	if _, err := db.ExecContext(ctx, witnessSQL); err != nil {
		return witness{}, fmt.Errorf("make the witness: %w", err)
	}
	for _, name := range locks {
		if _, err := db.ExecContext(ctx, `INSERT INTO interop_counter VALUES ($1, 0)`, name); err != nil {
			return witness{}, fmt.Errorf("make the witness: %w", err)
		}
	}
	return witness{db}, nil
}

// clear forgets what was seen, for another contest over these locks.
func (w witness) clear(ctx context.Context) error {
	_, err := w.db.ExecContext(ctx, `TRUNCATE interop_section, interop_history, interop_reader; UPDATE interop_counter SET n = 0`)
	return err
}

func (w witness) enter(ctx context.Context, name, holder string, fence int64) (count int64, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT interop_enter($1, $2, 'ours', $3)`, name, holder, fence).Scan(&count)
	return count, err
}

func (w witness) leave(ctx context.Context, name, holder string, count int64) error {
	_, err := w.db.ExecContext(ctx, `SELECT interop_leave($1, $2, $3)`, name, holder, count+1)
	return err
}

// read notes a reader's beginning, and returns its number.
func (w witness) read(ctx context.Context, name string) (id int64, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT interop_read($1)`, name).Scan(&id)
	return id, err
}

func (w witness) unread(ctx context.Context, id int64) error {
	_, err := w.db.ExecContext(ctx, `SELECT interop_unread($1)`, id)
	return err
}

// seen is what the witness has to say.
type seen struct {
	java, ours, handovers, open int64
	// readers are sections of readers, of which so many were beside another; disturbed
	// are those that were beside a section of one who had the lock alone.
	readers, shared, disturbed int64
	// overlaps were noticed by the key, crossings by the times, and lost are
	// increments of the counters. regressions are fences that went back.
	overlaps, crossings, lost, regressions int64
}

func (w witness) testify(ctx context.Context) (s seen, err error) {
	err = w.db.QueryRowContext(ctx, `
		WITH h AS (
		  SELECT *, lag(side) OVER w AS side_before, lag(gone) OVER w AS gone_before FROM interop_history WINDOW w AS (PARTITION BY lock ORDER BY id)
		), o AS (
		  SELECT fence, lag(fence) OVER (PARTITION BY lock ORDER BY id) AS fence_before FROM interop_history WHERE side = 'ours'
		)
		SELECT count(*) FILTER (WHERE side = 'java'), count(*) FILTER (WHERE side = 'ours'),
		       count(*) FILTER (WHERE side <> side_before), count(*) FILTER (WHERE gone IS NULL),
		       count(*) FILTER (WHERE met), count(*) FILTER (WHERE gone_before > entered),
		       count(*) - (SELECT coalesce(sum(n), 0) FROM interop_counter),
		       (SELECT count(*) FROM o WHERE fence <= fence_before)
		  FROM h`).Scan(&s.java, &s.ours, &s.handovers, &s.open, &s.overlaps, &s.crossings, &s.lost, &s.regressions)
	if err != nil {
		return s, fmt.Errorf("ask the witness: %w", err)
	}
	err = w.db.QueryRowContext(ctx, `
		SELECT count(*), count(*) FILTER (WHERE EXISTS (
		         SELECT 1 FROM interop_reader o WHERE o.lock = r.lock AND o.id <> r.id AND o.entered < r.gone AND r.entered < o.gone)),
		       count(*) FILTER (WHERE met OR EXISTS (
		         SELECT 1 FROM interop_history h WHERE h.lock = r.lock AND h.entered < r.gone AND r.entered < h.gone)),
		       $1 + count(*) FILTER (WHERE gone IS NULL)
		  FROM interop_reader r`, s.open).Scan(&s.readers, &s.shared, &s.disturbed, &s.open)
	if err != nil {
		return s, fmt.Errorf("ask the witness for readers: %w", err)
	}
	return s, nil
}

// verdict is nil when nobody was ever in a section with another, and both sides
// have really contended.
func (s seen) verdict() error {
	switch {
	case s.overlaps+s.crossings+s.lost+s.open != 0:
		return fmt.Errorf("%d sections overlapped by the key, %d by the clock; %d increments were lost; %d sections did not end", s.overlaps, s.crossings, s.lost, s.open)
	case s.disturbed != 0:
		return fmt.Errorf("%d readers met one who had the lock alone", s.disturbed)
	case s.regressions != 0:
		return fmt.Errorf("%d fences went back", s.regressions)
	case s.java < 20 || s.ours < 20 || s.handovers < 20:
		return fmt.Errorf("they have hardly met: %d sections of Java, %d of ours, %d handovers", s.java, s.ours, s.handovers)
	}
	return nil
}
