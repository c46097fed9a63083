package oracle

import (
	"database/sql"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// encoder turns the values of a row, as they were selected, into a row.
type encoder struct {
	plan     plan
	builder  *source.Builder
	location *time.Location
	values   []sql.RawBytes
	cursor   []byte
	part     []byte
}

func (e *encoder) encode(values []sql.RawBytes) *observer.Row {
	b, p := e.builder, &e.plan
	b.Start(0)
	for n, i := range p.selection.Key {
		b.KeyPart(n, keyText(e.part[:0], p.kinds[i], values[p.at[i]]))
	}
	cursor, at := e.timestamp(values)
	for i := range p.selection.Data {
		if !b.Member(i) {
			break
		}
		k, value := p.kinds[i], values[p.at[i]]
		if k.items() > 1 {
			appendLOB(b, i, k, values[p.at[i]-1], value)
			continue
		}
		appendCell(b, i, k, value)
	}
	return b.Finish(cursor, at)
}

func (e *encoder) timestamp(values []sql.RawBytes) ([]byte, time.Time) {
	i := e.plan.selection.Timestamp
	if i < 0 || values[e.plan.at[i]] == nil {
		return nil, time.Time{}
	}
	cursor, at, ok := e.plan.time.appendCursor(e.cursor[:0], values[e.plan.at[i]], e.location)
	if !ok {
		e.builder.Fail(i, "is outside of the years 1 to 9999")
		return nil, time.Time{}
	}
	e.cursor = cursor
	return cursor, at
}
