package oratest

import "math/bits"

// chunkSize is the longest piece of a value that goes in one chunk, and
// shortValue the longest value that goes without chunks.
const (
	chunkSize  = 0x7FFF
	shortValue = 0xFC
)

// encoder builds what the server says.
type encoder struct{ buf []byte }

func (e *encoder) put(b ...byte) { e.buf = append(e.buf, b...) }

// int puts a number behind the count of its bytes, with a bit for its sign.
func (e *encoder) int(n int64) {
	sign, u := byte(0), uint64(n)
	if n < 0 {
		sign, u = 0x80, uint64(-n)
	}
	size := (bits.Len64(u) + 7) / 8
	e.put(sign | byte(size))
	for i := size - 1; i >= 0; i-- {
		e.put(byte(u >> (8 * i)))
	}
}

// ints puts numbers one after the other.
func (e *encoder) ints(all ...int) {
	for _, n := range all {
		e.int(int64(n))
	}
}

// clr puts bytes behind their length, in chunks when they are many.
func (e *encoder) clr(b []byte) {
	if len(b) <= shortValue {
		e.put(byte(len(b)))
		e.put(b...)
		return
	}
	e.put(0xFE)
	for len(b) > 0 {
		chunk := b[:min(chunkSize, len(b))]
		b = b[len(chunk):]
		e.ints(len(chunk))
		e.put(chunk...)
	}
	e.put(0)
}

// dlc puts bytes behind their length twice, and none as a single zero.
func (e *encoder) dlc(b []byte) {
	e.ints(len(b))
	if len(b) > 0 {
		e.clr(b)
	}
}

func (e *encoder) pair(key, value string, flag int) {
	e.dlc([]byte(key))
	e.dlc([]byte(value))
	e.ints(flag)
}

// summary is the server's last word in a call.
type summary struct {
	row, code, cursor, position int
	text                        string
}

func (e *encoder) summary(s summary) {
	e.put(msgSummary)
	e.ints(1, 0, s.row, min(s.code, 0xFFFF), 0, 0, s.cursor, s.position)
	e.put(0, 0) // kind of statement, severity
	e.ints(0, 0)
	e.put(0, 0)
	e.ints(0, 0) // row identifier, from here to the slot
	e.put(0)
	e.ints(0, 0, 0)
	e.put(0, 0)
	e.ints(0, 0)
	e.dlc(nil)
	e.ints(0, 0, 0, s.code, s.row)
	if s.code != 0 {
		e.clr([]byte(s.text))
	}
}

// done says that a call without a result has ended well.
func (e *encoder) done() {
	e.put(msgDone)
	e.ints(1, 0)
}
