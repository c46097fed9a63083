package lockdb

import (
	"context"
	"database/sql"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// PauseSink has the relays of all nodes leave a sink alone until [Operations.ResumeSink]. It
// reports false for one that is paused.
func (t *Operations) PauseSink(ctx context.Context, sink string, by By) (changed bool, err error) {
	return t.onSink(ctx, by, "pause-sink", sink, "", t.sql.SQL().Sink.Pause, sink, sqldb.Storable(by.Actor), sqldb.Storable(by.Reason))
}

// ResumeSink lets the relays feed a sink again. It reports false for one that is not paused.
func (t *Operations) ResumeSink(ctx context.Context, sink string, by By) (changed bool, err error) {
	return t.onSink(ctx, by, "resume-sink", sink, "", t.sql.SQL().Sink.Resume, sink)
}

// AdoptSink has a stream go on from the offset of a sink, whatever the sink holds of it,
// until the next event of the stream is stored. It reports false where that is so already.
func (t *Operations) AdoptSink(ctx context.Context, sink, stream string, by By) (changed bool, err error) {
	return t.onSink(ctx, by, "adopt-sink", sink, stream, t.sql.SQL().Sink.Adopt, sink, stream)
}

// onSink runs a statement, and notes the act if it has changed something.
func (t *Operations) onSink(ctx context.Context, by By, action, sink, detail, text string, args ...any) (changed bool, err error) {
	err = t.db.InTx(ctx, action+" "+sink, func(tx *sql.Tx) error {
		n, err := sqldb.Affected(tx.ExecContext(ctx, text, args...))
		if changed = n > 0; err != nil || !changed {
			return err
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, action, sink, detail))
	})
	return changed, err
}
