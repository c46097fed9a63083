package oratest

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

type twoRows struct{ left int }

func (r *twoRows) Next() ([]wire.Value, bool) {
	r.left--
	return []wire.Value{"1", "text"}, r.left >= 0
}

func (*twoRows) Close() {}

type anything struct{}

func (anything) Execute(context.Context, wire.Statement) (wire.Result, error) {
	columns := []wire.Column{{Name: "N", Type: wire.TypeNumber}, {Name: "C", Type: wire.TypeCLOB}}
	return wire.Result{Columns: columns, Rows: &twoRows{left: 2}}, nil
}

func (anything) Closed(*wire.Session) {}

// FuzzServer sends what a client might say, in a session (the first byte is
// odd) or from its very first packet. The server has to end the conversation,
// and nothing more.
func FuzzServer(f *testing.F) {
	ping := dataPackets([]byte{msgFunction, fnPing, 0}, 8192)
	f.Add(append([]byte{1}, ping...))
	f.Add(append([]byte{1}, markerPacket(markerInterrupt)...))
	f.Add(append([]byte{1}, dataPackets([]byte{msgPiggyback, fnCloseCursors, 0, 1, 1, 1, 1, 1, msgFunction, fnPing, 0}, 8192)...))
	f.Add(append([]byte{1}, dataPackets([]byte{msgFunction, fnFetch, 0, 1, 1, 1, 25}, 8192)...))
	for _, fn := range []byte{fnExecute, fnReexecute, fnReexecuteFetch, fnLOB, fnAuthenticate, fnSessionKey, fnLogoff} {
		said := append([]byte{msgFunction, fn, 0}, make([]byte, 80)...)
		f.Add(append([]byte{1}, dataPackets(said, 8192)...))
		f.Add(append([]byte{0}, dataPackets(said, 8192)...))
	}
	query := &encoder{}
	query.put(msgFunction, fnExecute, 0)
	query.ints(opParse|opExecute, 0)
	query.put(1, 1, 8, 1, 1, 13, 0, 0, 0, 1, 25, 1, 9)
	query.put(make([]byte, 2+6+1+8+3+7)...)
	query.clr([]byte("SELECT 1"))
	query.put(make([]byte, 13)...)
	f.Add(append([]byte{1}, dataPackets(query.buf, 8192)...))
	f.Add(append([]byte{0}, acceptPacket(8192)...))
	f.Fuzz(func(t *testing.T, said []byte) {
		if len(said) == 0 {
			return
		}
		o, err := Options{Handler: anything{}, Users: map[string]string{"A": "b"}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		accounts, err := newAccounts(o)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{opts: o, accounts: accounts, conns: make(map[*conn]struct{})}
		near, far := net.Pipe()
		c := newConn(s, far, 1)
		if said[0]&1 == 1 {
			c.session = &wire.Session{User: "A"}
			s.work.Go(func() {
				defer c.end()
				c.talk()
			})
		} else {
			s.work.Go(c.serve)
		}
		s.work.Go(func() { _, _ = io.Copy(io.Discard, near) })
		_, _ = near.Write(said[1:])
		_ = near.Close()
		s.work.Wait()
	})
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0", "-1", "0.001", "100", "-9999999999999999999999999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := encodeNumber(text)
		if err != nil {
			return
		}
		back, err := decodeNumber(b)
		if err != nil {
			t.Fatalf("%q as %x: %v", text, b, err)
		}
		again, err := encodeNumber(back)
		if err != nil || string(again) != string(b) {
			t.Errorf("%q as %x, back as %q and %x, %v", text, b, back, again, err)
		}
	})
}
