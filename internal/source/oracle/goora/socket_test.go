package goora

import (
	"bytes"
	"net"
	"testing"
)

// An interruption has the form of the packets before it: lengths have two bytes
// until both sides are of version 12, and four from then on.
func TestInterruptForms(t *testing.T) {
	for _, c := range []struct{ packet, want []byte }{
		{[]byte{0, 58, 0, 0, 6, 0, 0, 0}, []byte{0, 11, 0, 0, 12, 0, 0, 0, 1, 0, 3}},
		{[]byte{0, 0, 0, 58, 6, 0, 0, 0}, []byte{0, 0, 0, 11, 12, 0, 0, 0, 1, 0, 3}},
	} {
		sent := &recorder{}
		s := &socket{Conn: sent}
		if _, err := s.Write(c.packet); err != nil {
			t.Fatal(err)
		}
		s.interrupt()
		if got := sent.Bytes()[len(c.packet):]; !bytes.Equal(got, c.want) {
			t.Errorf("after % x: % x", c.packet, got)
		}
	}
}

// recorder keeps what is written to it.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorder) Read(p []byte) (int, error)  { return r.Buffer.Read(p) }

func TestShapeIsKnown(t *testing.T) {
	if err := shape(); err != nil {
		t.Error(err)
	}
}
