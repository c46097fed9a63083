package oratest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

var (
	errGone   = errors.New("the connection has ended")
	errBroken = errors.New("the client broke the call")
	errKilled = errors.New("the session was killed")
)

// conn is one connection. Its serve goroutine does what the client asks for,
// its listen goroutine reads what the client says meanwhile.
type conn struct {
	server *Server
	raw    net.Conn
	// stream is raw, or TLS over it.
	stream io.ReadWriter
	serial int

	mute    bool
	refused bool
	refusal int

	// ctx ends with the connection.
	ctx    context.Context
	cancel context.CancelFunc
	// packets carries what listen has read, resets the client's resets.
	packets chan []byte
	resets  chan struct{}

	mu sync.Mutex
	// running stops the call under way; nil between calls. broken says that a
	// break has come which no call has answered.
	running context.CancelCauseFunc
	broken  bool
	deaf    bool
	killed  bool

	// The rest belongs to the serve goroutine.
	logon   logon
	session *wire.Session
	cursors cursors
	// half makes the next answer end in its middle.
	half bool
}

func newConn(s *Server, raw net.Conn, serial int) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{
		server: s, raw: raw, stream: raw, serial: serial,
		ctx: ctx, cancel: cancel,
		packets: make(chan []byte), resets: make(chan struct{}, 1),
		cursors: cursors{all: map[int]*cursor{}},
	}
}

// cut ends the connection at once. The socket is closed first: serve, once it
// has noticed, closes it too, and only the first of both waits until it is.
func (c *conn) cut() {
	_ = c.raw.Close()
	c.cancel()
}

func (c *conn) serve() {
	defer c.end()
	if c.mute {
		_, _ = io.Copy(io.Discard, c.raw)
		return
	}
	if c.server.opts.TLS != nil {
		c.stream = tls.Server(c.raw, c.server.opts.TLS)
	}
	if err := c.accept(); err != nil {
		c.report(err)
		return
	}
	c.talk()
}

// talk serves an accepted connection to its end.
func (c *conn) talk() {
	c.server.work.Go(c.listen)
	for {
		if err := c.next(); err != nil {
			c.report(err)
			return
		}
	}
}

// end gives back what the connection holds.
func (c *conn) end() {
	c.cut()
	c.cursors.closeAll()
	if c.session != nil {
		c.server.opts.Handler.Closed(c.session)
		c.session = nil
	}
	c.server.forget(c)
}

// report keeps a failure that is not just the end of the connection.
func (c *conn) report(err error) {
	var lost *net.OpError
	if errors.Is(err, errGone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &lost) {
		return
	}
	c.server.counters.problem(fmt.Errorf("connection %d: %w", c.serial, err))
}

// listen reads packets until the connection ends, and with it what is under way.
func (c *conn) listen() {
	defer c.cancel()
	for {
		p, err := readPacket(c.stream, true)
		if err != nil {
			c.report(err)
			return
		}
		switch p.kind {
		case packetMarker:
			c.marked(p.marker())
		case packetData:
			if body, last := p.data(); last || !c.pass(body) {
				return
			}
		default:
			c.report(fmt.Errorf("a packet of kind %d", p.kind))
			return
		}
	}
}

func (c *conn) pass(body []byte) bool {
	select {
	case c.packets <- body:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// marked takes a marker of the client: a break stops the call under way, or
// the next one when there is none.
func (c *conn) marked(kind byte) {
	if kind == markerReset {
		select {
		case c.resets <- struct{}{}:
		default:
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.counters.breaks.Add(1) // Once it is counted, the call under way does not end before it has heard of it.
	if c.deaf {
		return
	}
	c.broken = true
	if c.running != nil {
		c.running(errBroken)
	}
}

// kill ends the session: the call under way, or the next one, gets ORA-00028.
func (c *conn) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.running != nil {
		c.running(errKilled)
	}
}

// receive waits for the next packet of data.
func (c *conn) receive() ([]byte, error) {
	select {
	case body := <-c.packets:
		return body, nil
	case <-c.ctx.Done():
		return nil, errGone
	}
}

// send says something to the client.
func (c *conn) send(said []byte) error {
	out := dataPackets(said, c.server.opts.PacketSize)
	if c.half {
		return errors.Join(c.write(out[:len(out)/2]), errGone)
	}
	return c.write(out)
}

func (c *conn) write(out []byte) error {
	_, err := c.stream.Write(out)
	return err
}

// reset drops what is under way on both sides: the server's markers, and the
// client's answer to them.
func (c *conn) reset() error {
	select {
	case <-c.resets:
	default:
	}
	if err := c.write(append(markerPacket(markerBreak), markerPacket(markerReset)...)); err != nil {
		return err
	}
	select {
	case <-c.resets:
	case <-c.ctx.Done():
		return errGone
	}
	c.mu.Lock()
	c.broken = false
	c.mu.Unlock()
	return nil
}
