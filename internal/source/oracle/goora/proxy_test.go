package goora_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/test/kit/oratest"
)

// packetSize is small enough for a fetch's answer to take several packets, of
// which all but the last are full.
const packetSize = 512

// breaker stands between driver and server. Once armed, it lets the first
// packet of the next fetch's answer pass, and then breaks the answer off as a
// server does, but with a summary that knows of no error.
type breaker struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup

	armed atomic.Bool
	// bare is the latest data packet of the server while record is set: a
	// summary without an error.
	record atomic.Bool
	bare   atomic.Pointer[[]byte]
	broken atomic.Int64
}

// link is one connection through a breaker.
type link struct {
	*breaker
	fetching atomic.Bool
	dropping bool
}

func startBreaker(t *testing.T, server string) *breaker {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{listener: listener, server: server}
	b.work.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				_ = down.Close()
				continue
			}
			l := &link{breaker: b}
			b.work.Go(func() { l.copy(up, down, l.request) })
			b.work.Go(func() { l.copy(down, up, l.answer) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); b.work.Wait() })
	return b
}

// copy passes packets on, as edit has them.
func (*link) copy(to, from net.Conn, edit func([]byte) []byte) {
	defer func() { _, _ = to.Close(), from.Close() }()
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		length := int(binary.BigEndian.Uint16(head))
		if length == 0 {
			length = int(binary.BigEndian.Uint32(head))
		}
		packet := make([]byte, length)
		copy(packet, head)
		if _, err := io.ReadFull(from, packet[len(head):]); err != nil {
			return
		}
		if _, err := to.Write(edit(packet)); err != nil {
			return
		}
	}
}

const (
	dataPacket   = 6
	markerPacket = 12
)

func (l *link) request(packet []byte) []byte {
	switch {
	case packet[4] == markerPacket:
		return nil // The server knows nothing of a break.
	case packet[4] == dataPacket && len(packet) > 12 && packet[10] == 3 && packet[11] == 5:
		l.fetching.Store(l.armed.CompareAndSwap(true, false))
	}
	return packet
}

func (l *link) answer(packet []byte) []byte {
	if l.record.Load() {
		l.bare.Store(&packet)
	}
	if l.dropping {
		l.dropping = len(packet) == packetSize
		return nil
	}
	if !l.fetching.CompareAndSwap(true, false) || len(packet) != packetSize {
		return packet
	}
	l.dropping = true
	l.broken.Add(1)
	marker := []byte{0, 0, 0, 11, markerPacket, 0x20, 0, 0, 1, 0}
	broken := append([]byte(nil), packet...)
	broken = append(append(broken, marker...), 1)
	broken = append(append(broken, marker...), 2)
	return append(broken, *l.bare.Load()...)
}

// An answer that was broken off in its middle loses rows there; the rows after
// it come as though nothing had happened.
func TestRowsLostInTheMiddle(t *testing.T) {
	o := options()
	o.PacketSize = packetSize
	s := oratest.Start(t, o)
	b := startBreaker(t, s.Addr())
	at := target(s)
	at.Servers, at.FetchSize = []string{b.listener.Addr().String()}, 50
	db := open(t, at)
	if n, err := read(t.Context(), db, "SELECT ROWS 200"); n != 200 || err != nil {
		t.Fatal(n, err)
	}
	bare := s.On(oratest.SQL("BARE"), oratest.Fault{Then: oratest.NoRows})
	right(t, db)
	b.record.Store(true)
	if _, err := db.ExecContext(t.Context(), "DELETE BARE"); err != nil {
		t.Fatal(err)
	}
	b.record.Store(false)
	bare.Release()
	b.armed.Store(true)
	ctx, _ := within(t, soon)
	n, err := read(ctx, db, "SELECT ROWS 200")
	if !errors.Is(err, client.ErrShort) || b.broken.Load() != 1 {
		t.Errorf("%d rows, %v, %d broken off", n, err, b.broken.Load())
	}
	if n, err := read(t.Context(), db, "SELECT ROWS 200"); n != 200 || err != nil {
		t.Error(n, err)
	}
}
