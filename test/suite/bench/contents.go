package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// contentsSQL sums up all that was stored, but not when.
const contentsSQL = `
SELECT (SELECT count(*) || ' events ' || coalesce(sum(hashtextextended(
          (stream, seq, event_id, type, subject, version, change, time, data::text)::text, 0)), 0) FROM obs_event)
    || ', ' ||
       (SELECT count(*) || ' observed ' || coalesce(sum(hashtextextended(o::text, 0)), 0) FROM obs_observed o)`

// contents identifies what is in the tables: equal texts, equal rows.
func contents(ctx context.Context, database string) (text string, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := conn.QueryRow(ctx, contentsSQL).Scan(&text); err != nil {
		return "", fmt.Errorf("sum up the tables: %w", err)
	}
	return text, nil
}
