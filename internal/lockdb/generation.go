package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// Generation implements [observer.Store].
func (s *Store) Generation(ctx context.Context, c observer.Cursor) (g observer.Generation, err error) {
	err = s.db.Query(ctx, "read how far the reading of "+c.Stream+" has come", `
		SELECT reading, key, complete, seen, row_count, started_at, finished_at, took_ms FROM obs_generation WHERE stream_id = $1`,
		func(scan func(...any) error) error {
			var took int64
			err := scan(&g.Reading, &g.Key, &g.Complete, &g.Seen, &g.Rows, sqldb.ScanTime(&g.StartedAt), sqldb.ScanTime(&g.FinishedAt), &took)
			g.Took = time.Duration(took) * time.Millisecond
			return err
		}, c.ID)
	return g, err
}

// generationSQL takes the place of what was remembered.
const generationSQL = `
INSERT INTO obs_generation (stream_id, reading, key, complete, seen, row_count, started_at, finished_at, took_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (stream_id) DO UPDATE
   SET reading = excluded.reading, key = excluded.key, complete = excluded.complete, seen = excluded.seen, row_count = excluded.row_count,
       started_at = excluded.started_at, finished_at = excluded.finished_at, took_ms = excluded.took_ms`

func generationArgs(db *sqldb.DB, ch *observer.Chunk) []any {
	g := ch.Generation
	var finished any
	if !g.FinishedAt.IsZero() {
		finished = db.TimeArg(g.FinishedAt)
	}
	seen := g.Seen
	if seen == nil {
		seen = []byte{}
	}
	return []any{ch.Before.ID, g.Reading, g.Key, g.Complete, seen, g.Rows, db.TimeArg(g.StartedAt), finished, g.Took.Milliseconds()}
}

// forgetGenerationSQL ends what was begun: the stream is read from its beginning.
const forgetGenerationSQL = `DELETE FROM obs_generation WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1)`
