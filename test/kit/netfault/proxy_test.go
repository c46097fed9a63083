package netfault_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

// server answers each line with itself and tells what it got.
type server struct {
	addr string
	got  chan string
}

func serve(t *testing.T) server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server{addr: listener.Addr().String(), got: make(chan string, 16)}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { s.echo(conn) })
		}
	})
	// The proxy, which starts later, stops before and ends the connections.
	t.Cleanup(func() {
		_ = listener.Close()
		work.Wait()
	})
	return s
}

func (s server) echo(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		s.got <- line
		_, _ = io.WriteString(conn, line)
	}
}

// receives waits for the next line.
func (s server) receives(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-s.got:
		if got != want {
			t.Errorf("the server got %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("the server never got %q", want)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(conn, line); err != nil {
		t.Fatal(err)
	}
}

// answer reads one line; an end of the connection is the empty line.
func answer(t *testing.T, conn net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(conn).ReadString('\n')
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("neither an answer nor the end of the connection")
	}
	return line
}

// faulty starts a proxy that injects the fault into lines with the word.
func faulty(t *testing.T, s server, word string, fault netfault.Fault) *netfault.Proxy {
	t.Helper()
	proxy := netfault.Start(t, s.addr)
	proxy.Inspect(func(request []byte) netfault.Fault {
		if bytes.Contains(request, []byte(word)) {
			return fault
		}
		return netfault.Fault{}
	})
	return proxy
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn := dial(t, netfault.Start(t, s.addr).Addr())
	send(t, conn, "hello\n")
	s.receives(t, "hello\n")
	if got := answer(t, conn); got != "hello\n" {
		t.Errorf("answer %q", got)
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn := dial(t, faulty(t, s, "lose", netfault.Fault{LoseAnswer: true}).Addr())
	send(t, conn, "first\n")
	s.receives(t, "first\n")
	if got := answer(t, conn); got != "first\n" {
		t.Errorf("answer %q before the fault", got)
	}
	send(t, conn, "lose\n")
	s.receives(t, "lose\n")
	if got := answer(t, conn); got != "" {
		t.Errorf("answer %q, want none", got)
	}
}

func TestLateRequestArrivesWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn := dial(t, faulty(t, s, "late", netfault.Fault{Late: 200 * time.Millisecond}).Addr())
	send(t, conn, "late\n")
	if got := answer(t, conn); got != "" {
		t.Errorf("answer %q, want none", got)
	}
	s.receives(t, "late\n")
}

func TestHeldRequestWaits(t *testing.T) {
	t.Parallel()
	s := serve(t)
	release := make(chan struct{})
	proxy := faulty(t, s, "held", netfault.Fault{Hold: release})
	conn, other := dial(t, proxy.Addr()), dial(t, proxy.Addr())
	send(t, conn, "held\n")
	send(t, conn, "behind\n")
	// That another connection gets through shows that the first one is held.
	send(t, other, "other\n")
	s.receives(t, "other\n")
	close(release)
	s.receives(t, "held\n")
	s.receives(t, "behind\n")
	if got := answer(t, conn); got != "held\n" {
		t.Errorf("answer %q", got)
	}
}

func TestHeldRequestEndsWithTheProxy(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var once sync.Once
	held := make(chan struct{})
	t.Run("while a request is held", func(t *testing.T) {
		proxy := netfault.Start(t, s.addr)
		proxy.Inspect(func([]byte) netfault.Fault {
			once.Do(func() { close(held) })
			return netfault.Fault{Hold: make(chan struct{})}
		})
		send(t, dial(t, proxy.Addr()), "never\n")
		<-held
	})
	select {
	case line := <-s.got:
		t.Errorf("the server got %q", line)
	default:
	}
}

func TestRefuseAndCut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy := netfault.Start(t, s.addr)
	conn := dial(t, proxy.Addr())
	send(t, conn, "before\n")
	s.receives(t, "before\n")
	if got := answer(t, conn); got != "before\n" {
		t.Errorf("answer %q", got)
	}
	proxy.Refuse(true)
	if got := answer(t, conn); got != "" {
		t.Errorf("answer %q over a connection that was cut", got)
	}
	if got := answer(t, dial(t, proxy.Addr())); got != "" {
		t.Errorf("answer %q while connections are refused", got)
	}
	proxy.Refuse(false)
	again := dial(t, proxy.Addr())
	send(t, again, "after\n")
	s.receives(t, "after\n")
	if got := answer(t, again); got != "after\n" {
		t.Errorf("answer %q once connections are accepted again", got)
	}
}
