package lockdb

import (
	"context"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// PauseSink has the relays of all nodes leave a sink alone until [Operations.ResumeSink]. It
// reports false for one that is paused.
func (t *Operations) PauseSink(ctx context.Context, sink string, by By) (changed bool, err error) {
	n, err := t.change(ctx, Did(by, "pause-sink", sink, ""), t.sql.SQL().Sink.Pause, sink, sqldb.Storable(by.Actor), sqldb.Storable(by.Reason))
	return n > 0, err
}

// ResumeSink lets the relays feed a sink again. It reports false for one that is not paused.
func (t *Operations) ResumeSink(ctx context.Context, sink string, by By) (changed bool, err error) {
	n, err := t.change(ctx, Did(by, "resume-sink", sink, ""), t.sql.SQL().Sink.Resume, sink)
	return n > 0, err
}

// AdoptSink has a stream go on from the offset of a sink, whatever the sink holds of it,
// until the next event of the stream is stored. It reports false where that is so already.
func (t *Operations) AdoptSink(ctx context.Context, sink, stream string, by By) (changed bool, err error) {
	n, err := t.change(ctx, Did(by, "adopt-sink", sink, stream), t.sql.SQL().Sink.Adopt, sink, stream)
	return n > 0, err
}
