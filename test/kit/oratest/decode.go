package oratest

import (
	"errors"
	"fmt"
)

// maxMessage bounds the bytes of one message of a client.
const maxMessage = 64 << 20

var errShortMessage = errors.New("the message ends too early")

// decoder reads the fields of a client's message. The first failure stays:
// whatever is read after it is zero.
type decoder struct {
	buf []byte
	// more brings the next packet of a message that is longer than one; nil
	// when there is none.
	more func() ([]byte, error)
	size int
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// bytes returns the next n bytes as they are.
func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > maxMessage {
		d.fail("a field of %d bytes", n)
	}
	for d.err == nil && len(d.buf) < n {
		d.refill()
	}
	if d.err != nil {
		return nil
	}
	field := d.buf[:n:n]
	d.buf = d.buf[n:]
	return field
}

func (d *decoder) refill() {
	if d.more == nil {
		d.err = errShortMessage
		return
	}
	next, err := d.more()
	if err != nil {
		d.err = err
		return
	}
	if d.size += len(next); d.size > maxMessage {
		d.fail("a message of more than %d bytes", maxMessage)
		return
	}
	d.buf = append(d.buf, next...)
}

func (d *decoder) skip(n int) { d.bytes(n) }

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// uint reads a number that says in its first byte how many bytes it has.
func (d *decoder) uint() uint64 {
	size := int(d.byte() & 0x7F)
	if size > 8 {
		d.fail("a number of %d bytes", size)
		return 0
	}
	var n uint64
	for _, b := range d.bytes(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

// int reads a number that counts or measures something of a message.
func (d *decoder) int() int {
	n := d.uint()
	if n > 1<<31 {
		d.fail("the number %d is out of range", n)
		return 0
	}
	return int(n)
}

// clr reads bytes with their length before them, in chunks when there are more
// than 252. No bytes are nil, as NULL is.
func (d *decoder) clr() []byte {
	size := d.byte()
	switch size {
	case 0, 0xFD, 0xFF:
		return nil
	case 0xFE:
	default:
		return d.bytes(int(size))
	}
	var all []byte
	for d.err == nil {
		chunk := d.int()
		if chunk == 0 {
			break
		}
		all = append(all, d.bytes(chunk)...)
	}
	return all
}

// dlc reads bytes whose length stands before them twice.
func (d *decoder) dlc() []byte {
	if d.int() == 0 {
		return nil
	}
	return d.clr()
}

// each reads something n times, or until a failure.
func (d *decoder) each(n int, read func()) {
	for range n {
		if d.err != nil {
			return
		}
		read()
	}
}

// pairs reads n keys with their values.
func (d *decoder) pairs(n int) map[string]string {
	all := make(map[string]string)
	d.each(n, func() {
		key, value := d.dlc(), d.dlc()
		d.uint()
		all[string(key)] = string(value)
	})
	return all
}
