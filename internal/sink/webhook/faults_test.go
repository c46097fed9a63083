package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// says delivers an event that cannot be stored, and compares the error.
func says(t *testing.T, s *webhook.Sink, want string) {
	t.Helper()
	closeSink(t, s)
	n, err := sinktest.Deliver(t.Context(), s, keyed("orders", 1, 1))
	if n > 0 || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("stored %d: %v, want %q", n, err, want)
	}
}

// answering listens, and answers each connection with a text after the first bytes.
func answering(t *testing.T, text string) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

func TestWhatAnswersNothingIsExplained(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	encrypted, _ := overTLS(t, http.NotFoundHandler())
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct{ url, want string }{
		"nobody listens":           {closed.URL, "cannot be reached: dial tcp"},
		"an unknown authority":     {encrypted.URL, "certificate is not accepted"},
		"TLS before plain HTTP":    {"https" + strings.TrimPrefix(r.URL, "http"), "speaks no TLS"},
		"TLS before another":       {"https" + strings.TrimPrefix(answering(t, "220 hunter2 ESMTP\r\n"), "http"), "speaks no TLS"},
		"nothing":                  {answering(t, ""), "closed the connection without an answer"},
		"half an answer":           {answering(t, "HTTP/1.1 200 OK\r\nContent-Type: a\r\n"), "closed the connection without an answer"},
		"half a body":              {answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhunter2"), "closed the connection without an answer"},
		"an odd length":            {answering(t, "HTTP/1.1 200 OK\r\nContent-Length: hunter2\r\n\r\n"), "answers no HTTP"},
		"an odd address":           {answering(t, "HTTP/1.1 302 Found\r\nLocation: http://[::1/hunter2\r\nContent-Length: 0\r\n\r\n"), "answers no HTTP"},
		"a switch of protocols":    {answering(t, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: hunter2\r\nConnection: upgrade\r\n\r\n"), "speaks another protocol"},
		"another protocol":         {answering(t, "220 hunter2 ESMTP\r\n"), "answers no HTTP"},
		"a header that is none":    {answering(t, "HTTP/1.1 200 OK\r\nhunter2\r\n\r\n"), "answers no HTTP"},
		"a name that nobody knows": {"https://shop.invalid", "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := r.options(t)
			o.URL = test.url + "/?token=hunter2"
			says(t, webhook.Open(o), test.want)
		})
	}
}

func TestASilentReceiverIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.answers(func(_ http.ResponseWriter, q *http.Request, _ []events.Event) bool {
		<-q.Context().Done()
		return true
	})
	o := r.options(t)
	o.Timeout = 50 * time.Millisecond
	says(t, webhook.Open(o), "did not answer within 50ms")
}

// TestALostAnswerIsARepeat loses the answer on its way: the receiver gets the event again,
// under its id.
func TestALostAnswerIsARepeat(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, secret(t, oneSecret))
	o := r.options(t)
	proxied, proxy := netfault.StartBefore(t, r.URL)
	o.URL = proxied
	lost := make(chan struct{}, 1)
	proxy.Inspect(func(request []byte) netfault.Fault {
		lose := bytes.HasPrefix(request, []byte("POST")) && len(lost) == 0
		if lose {
			lost <- struct{}{}
		}
		return netfault.Fault{LoseAnswer: lose}
	})
	s := webhook.Open(o)
	closeSink(t, s)
	all := batch("orders", 1, 3)
	if n, err := sinktest.Deliver(t.Context(), s, all); n != 0 || err == nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	if n, err := sinktest.Deliver(t.Context(), s, all); n != 3 || err != nil {
		t.Fatalf("stored %d: %v", n, err)
	}
	stored, err := r.has()
	if err != nil || len(stored) != 4 || stored[0].ID != stored[1].ID {
		t.Errorf("%d events arrived, want the first of 3 twice: %v", len(stored), err)
	}
}

func TestNoEventIsSentToAddressesOfTheHostsOwn(t *testing.T) {
	t.Parallel()
	const nowhere, encrypted, both = "refused", "only with TLS", "taken"
	for address, want := range map[string]string{
		"169.254.169.254": nowhere, "169.254.0.1": nowhere, "fe80::1%eth0": nowhere, "::ffff:169.254.169.254": nowhere, "64:ff9b::a9fe:a9fe": nowhere,
		"fd00:ec2::254": nowhere, "fd20:ce::254": nowhere, "100.100.100.200": nowhere, "168.63.129.16": nowhere, "192.0.0.192": nowhere,
		"0.0.0.0": nowhere, "::": nowhere, "224.0.0.1": nowhere, "ff02::1": nowhere, "255.255.255.255": nowhere,
		"10.0.0.1": encrypted, "192.0.2.1": encrypted, "fd00::1": encrypted, "2001:db8::1": encrypted, "64:ff9b::c000:201": encrypted,
		"127.0.0.1": both, "127.8.8.8": both, "::1": both, "::ffff:127.0.0.1": both,
	} {
		got := both
		switch a := netip.MustParseAddr(address); {
		case webhook.Refused(a, false) != nil:
			got = nowhere
		case webhook.Refused(a, true) != nil:
			got = encrypted
		}
		if got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

func TestANameThatLeadsToMetadataIsRefused(t *testing.T) {
	t.Parallel()
	names := resolving(t, [4]byte{169, 254, 169, 254})
	o := newReceiver(t).options(t)
	for _, o.URL = range []string{"https://shop.example/?token=hunter2", "http://shop.example"} {
		o.Insecure = true
		says(t, webhook.OpenBehind(o, names), "169.254.169.254 is link-local")
	}
	o.URL, o.Insecure = "http://shop.example", false
	says(t, webhook.OpenBehind(o, resolving(t, [4]byte{192, 0, 2, 1})), "192.0.2.1 is another host, and http:// is not encrypted")
}

// resolving answers each question for a name with one address.
func resolving(t *testing.T, a [4]byte) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		question := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(question)
			if errors.Is(err, net.ErrClosed) {
				done <- nil
				return
			}
			var m dnsmessage.Message
			if err = errors.Join(err, m.Unpack(question[:n])); err != nil {
				done <- err
				return
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: a}}}
			}
			packed, err := m.Pack()
			if err != nil {
				done <- err
				return
			}
			_, _ = conn.WriteTo(packed, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
