package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// Generation implements [observer.Store].
func (s *Store) Generation(ctx context.Context, c observer.Cursor) (g observer.Generation, err error) {
	err = s.db.Query(ctx, "read how far the reading of "+c.Stream+" has come", s.sql.SQL().Poll.Generation,
		func(scan func(...any) error) error {
			var took int64
			err := scan(&g.Reading, &g.Key, &g.Complete, &g.Seen, &g.Rows, sqldb.ScanTime(&g.StartedAt), sqldb.ScanTime(&g.FinishedAt), &took)
			g.Took = time.Duration(took) * time.Millisecond
			return err
		}, c.ID)
	return g, err
}

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
