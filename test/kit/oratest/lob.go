package oratest

import (
	"context"
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

const (
	locatorSize = 40
	lobRead     = 2
	lobLength   = 1
)

// locator puts the address of a LOB instead of its value: the cursor that it
// belongs to, and its number there.
func (cur *cursor) locator(e *encoder, value wire.Value) error {
	if value == nil {
		e.put(0)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("a %T as a CLOB", value)
	}
	cur.lobs = append(cur.lobs, text)
	var b [locatorSize]byte
	b[1], b[3], b[6] = locatorSize-2, 2, 0x80 // characters of two bytes
	binary.BigEndian.PutUint32(b[8:], uint32(cur.id))
	binary.BigEndian.PutUint32(b[12:], uint32(len(cur.lobs)-1))
	e.dlc(b[:])
	return nil
}

// lobRequest asks for the length of a LOB or for a part of it.
type lobRequest struct {
	locator       []byte
	charset       bool
	op            int
	offset, count int
	sized         bool
}

func decodeLOBRequest(d *decoder) lobRequest {
	var r lobRequest
	d.byte()
	size := d.int()
	d.byte()
	if d.int() != 0 {
		d.fail("a LOB to write to")
	}
	d.skip(2)
	r.charset = d.byte() != 0
	d.skip(2)
	r.op = d.int()
	d.byte()
	scn := d.int()
	r.offset = d.int()
	d.uint()
	r.sized = d.byte() != 0
	d.skip(6)
	r.locator = d.bytes(size)
	if r.charset {
		d.uint()
	}
	d.each(scn, func() { d.uint() })
	if r.sized {
		r.count = d.int()
	}
	return r
}

// readLOB serves the reading of a LOB.
func (c *conn) readLOB(d *decoder) error {
	r := decodeLOBRequest(d)
	if d.err != nil {
		return fmt.Errorf("a LOB: %w", d.err)
	}
	return c.call(func(context.Context) ([]byte, error) {
		text, ok := c.lob(r.locator)
		if !ok || r.op != lobRead && r.op != lobLength {
			return nil, &wire.Error{Code: 22275, Text: "invalid LOB locator specified"}
		}
		units := utf16.Encode([]rune(text))
		e := &encoder{}
		if r.op == lobRead {
			units = part(units, r.offset, r.count)
			e.put(msgLOB)
			e.clr(bigEndian(units))
		}
		e.put(msgParameters)
		e.put(r.locator...)
		if r.charset {
			e.ints(charsetUTF8)
		}
		if r.sized {
			e.ints(len(units))
		}
		e.summary(summary{})
		return e.buf, nil
	})
}

func (c *conn) lob(locator []byte) (string, bool) {
	if len(locator) != locatorSize {
		return "", false
	}
	cur := c.cursors.get(int(binary.BigEndian.Uint32(locator[8:])))
	at := int(binary.BigEndian.Uint32(locator[12:]))
	if cur == nil || at >= len(cur.lobs) {
		return "", false
	}
	return cur.lobs[at], true
}

// part is what an offset from 1 and a count ask for, a count of 0 for the rest.
func part(units []uint16, offset, count int) []uint16 {
	units = units[min(max(offset-1, 0), len(units)):]
	if count > 0 {
		units = units[:min(count, len(units))]
	}
	return units
}

func bigEndian(units []uint16) []byte {
	b := make([]byte, 0, 2*len(units))
	for _, unit := range units {
		b = binary.BigEndian.AppendUint16(b, unit)
	}
	return b
}
