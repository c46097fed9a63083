package netfault_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

// silence is how long nothing must come for nothing to have come. That it is
// short makes a test blind at worst, never wrong.
const silence = 150 * time.Millisecond

// says sends a line and expects it back.
func says(t *testing.T, s server, conn net.Conn, line string) {
	t.Helper()
	send(t, conn, line)
	s.receives(t, line)
	if got := answer(t, conn); got != line {
		t.Errorf("answer %q, want %q", got, line)
	}
}

// isSilent expects neither bytes nor the end of the connection.
func isSilent(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want silence", n, err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

// ends expects the end of the connection, and returns how it came.
func ends(t *testing.T, conn net.Conn) error {
	t.Helper()
	n, err := conn.Read(make([]byte, 64))
	if n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want the end of the connection", n, err)
	}
	return err
}

// counts waits until the proxy has counted that many.
func counts(t *testing.T, proxy *netfault.Proxy, what string, of func(netfault.Stats) int64, want int64) {
	t.Helper()
	waittest.Eventually(t, patience, func() error {
		if n := of(proxy.Stats()); n < want {
			return fmt.Errorf("%d pieces were %s, want %d", n, what, want)
		}
		return nil
	})
}

// hears expects nothing more at the server.
func (s server) hears(t *testing.T) {
	t.Helper()
	select {
	case line := <-s.got:
		t.Errorf("the server got %q", line)
	case <-time.After(silence):
	}
}

// connected is a server behind a proxy, and a connection on which something was said.
func connected(t *testing.T) (server, *netfault.Proxy, net.Conn) {
	t.Helper()
	s := serve(t)
	proxy := netfault.Start(t, s.addr)
	conn := dial(t, proxy.Addr())
	says(t, s, conn, "before\n")
	return s, proxy, conn
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.SetImpairment(netfault.BlackHole())
	send(t, conn, "swallowed\n")
	isSilent(t, conn)
	fresh := dial(t, proxy.Addr())
	send(t, fresh, "hello?\n")
	isSilent(t, fresh)
	s.hears(t)
	// What is still on its way when the impairment changes gets through.
	counts(t, proxy, "swallowed", func(s netfault.Stats) int64 { return s.Swallowed }, 2)
	proxy.SetImpairment(netfault.Impairment{})
	// Both have lost something and are of no use.
	if err := ends(t, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the end is %v, want a reset", err)
	}
	_ = ends(t, fresh)
	says(t, s, dial(t, proxy.Addr()), "after\n")
}

func TestBlackHoleSparesWhoSaidNothing(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.SetImpairment(netfault.BlackHole())
	proxy.SetImpairment(netfault.Impairment{})
	says(t, s, conn, "after\n")
}

func TestAnswersAreLostOnOneWay(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.SetImpairment(netfault.Impairment{Down: netfault.Lost})
	send(t, conn, "one way\n")
	s.receives(t, "one way\n")
	isSilent(t, conn)
}

func TestStalledBytesArriveWhenTheirSenderIsGone(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	gone := dial(t, proxy.Addr())
	says(t, s, gone, "before\n")
	proxy.SetImpairment(netfault.Impairment{Up: netfault.Stalled, Down: netfault.Stalled})
	send(t, gone, "orphan\n")
	_ = gone.Close()
	s.hears(t)
	isSilent(t, conn)
	counts(t, proxy, "stalled", func(s netfault.Stats) int64 { return s.Stalled }, 1)
	proxy.SetImpairment(netfault.Impairment{})
	s.receives(t, "orphan\n")
	says(t, s, conn, "after\n")
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.HalfOpen()
	send(t, conn, "to nobody\n")
	isSilent(t, conn)
	s.hears(t)
	if n := proxy.Stats().Halved; n != 1 {
		t.Errorf("%d connections are half open, want 1", n)
	}
	says(t, s, dial(t, proxy.Addr()), "another\n")
}

func TestReset(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.Reset()
	if err := ends(t, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the end is %v, want a reset", err)
	}
	if n := proxy.Stats().Ended; n != 1 {
		t.Errorf("%d connections were ended, want 1", n)
	}
	says(t, s, dial(t, proxy.Addr()), "after\n")
}

func TestSlow(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.SetImpairment(netfault.Impairment{Latency: 100 * time.Millisecond, Bandwidth: 1000})
	began := time.Now()
	says(t, s, conn, "one hundred bytes of which the most part is there because they are to be so many and not less than\n")
	if took := time.Since(began); took < 390*time.Millisecond {
		t.Errorf("there and back took %s, want at least 390 ms", took)
	}
	if n := proxy.Stats().Slowed; n < 2 {
		t.Errorf("%d pieces were slowed, want 2", n)
	}
}

// TestLateRequestIsWhole sends a request in pieces, as large ones come: the second
// when the proxy has seen the first.
func TestLateRequestIsWhole(t *testing.T) {
	t.Parallel()
	s, proxy, conn := connected(t)
	proxy.Inspect(func([]byte) netfault.Fault {
		if _, err := io.WriteString(conn, "the rest\n"); err != nil {
			t.Error(err)
		}
		return netfault.Fault{Late: 200 * time.Millisecond}
	})
	send(t, conn, "late and ")
	_, _ = io.Copy(io.Discard, conn)
	s.receives(t, "late and the rest\n")
	if n := proxy.Stats().Late; n != 1 {
		t.Errorf("%d requests were late, want 1", n)
	}
}

func TestClosedProxyLetsGoOfStalledConnections(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy, err := netfault.Open(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() // A second close is nothing.
	conn := dial(t, proxy.Addr())
	says(t, s, conn, "before\n")
	proxy.SetImpairment(netfault.Impairment{Up: netfault.Stalled})
	send(t, conn, "stuck\n")
	waiting := dial(t, proxy.Addr())
	proxy.Close()
	_ = ends(t, conn)
	_ = ends(t, waiting)
}
