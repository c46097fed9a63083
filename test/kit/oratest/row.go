package oratest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// addRow adds a row to an answer. Values that are those of the row before may
// be left out of any row but the first of an answer.
func (c *conn) addRow(e *encoder, cur *cursor, row []wire.Value, follows bool) error {
	sent := make([]bool, len(row))
	for i := range row {
		sent[i] = !c.server.opts.Repeats || !follows || !same(row[i], cur.before[i])
	}
	if c.server.opts.Repeats && follows {
		e.repeats(sent)
	}
	e.put(msgRow)
	for i, value := range row {
		if !sent[i] {
			continue
		}
		if err := cur.addValue(e, i, value); err != nil {
			return fmt.Errorf("column %s: %w", cur.columns[i].Name, err)
		}
	}
	cur.before = row
	return nil
}

func (cur *cursor) addValue(e *encoder, i int, value wire.Value) error {
	b, err := encodeValue(cur.columns[i].Type, value)
	if err != nil {
		return err
	}
	e.clr(b)
	if cur.long != nil && cur.long[i] {
		e.ints(0, 0)
	}
	return nil
}

// repeats says which columns of the next row are sent.
func (e *encoder) repeats(sent []bool) {
	bits, n := make([]byte, (len(sent)+7)/8), 0
	for i, one := range sent {
		if one {
			bits[i/8] |= 1 << (i % 8)
			n++
		}
	}
	e.put(msgRepeats)
	e.ints(n)
	e.put(bits...)
}

func same(a, b wire.Value) bool {
	switch a := a.(type) {
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.Equal(b) && a.Format(time.RFC3339) == b.Format(time.RFC3339)
	}
	return a == b
}
