package oratest

import "fmt"

// decoder reads the fields of a client's message. What it cannot read is a panic with a
// malformed, which [conn.next] turns into the end of the connection.
type decoder struct {
	buf []byte
	// more brings the next packet of a message that is longer than one.
	more func() ([]byte, error)
}

// malformed says why a message cannot be read.
type malformed struct{ error }

func (d *decoder) fail(format string, args ...any) { panic(malformed{fmt.Errorf(format, args...)}) }

// bytes returns the next n bytes as they are.
func (d *decoder) bytes(n int) []byte {
	for len(d.buf) < n {
		next, err := d.more()
		if err != nil {
			panic(malformed{err})
		}
		d.buf = append(d.buf, next...)
	}
	field := d.buf[:n:n]
	d.buf = d.buf[n:]
	return field
}

func (d *decoder) skip(n int) { d.bytes(n) }

func (d *decoder) byte() byte { return d.bytes(1)[0] }

// int reads a number that says in its first byte how many bytes it has.
func (d *decoder) int() int {
	n := 0
	for _, b := range d.bytes(int(d.byte() & 0x7F)) {
		n = n<<8 | int(b)
	}
	return n
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
	for chunk := d.int(); chunk != 0; chunk = d.int() {
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

// pairs reads n keys with their values.
func (d *decoder) pairs(n int) map[string]string {
	all := make(map[string]string)
	for range n {
		key, value := d.dlc(), d.dlc()
		d.int()
		all[string(key)] = string(value)
	}
	return all
}
