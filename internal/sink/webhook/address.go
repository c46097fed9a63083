package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// transport is a client's for one receiver.
func transport(o Options) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer(o).DialContext,
		TLSClientConfig:       o.TLS,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: o.Timeout, PingTimeout: o.Timeout}, // A connection may die silently.
		MaxConnsPerHost:       o.Concurrency,
		MaxIdleConnsPerHost:   o.Concurrency,
		IdleConnTimeout:       time.Minute,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // The body of an answer is not looked at.
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			return &outage{fmt.Errorf("the proxy answers %s; %s", named(answer.StatusCode), cmp.Or(advice[answer.StatusCode], "ask who runs it"))}
		},
	}
}

// dialer refuses addresses after their names are resolved, so that no name leads there.
func dialer(o Options) *net.Dialer {
	plain := strings.HasPrefix(strings.ToLower(o.URL), "http:")
	return &net.Dialer{
		Timeout: o.Timeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return errors.New("the address is none that can be checked")
			}
			return refused(at.Addr(), plain && !o.Insecure)
		},
	}
}

var (
	// metadata are services of clouds that hand out credentials; those of others are
	// link-local.
	metadata = []netip.Addr{
		netip.MustParseAddr("fd20:ce::254"),    // Google
		netip.MustParseAddr("fd00:ec2::254"),   // AWS
		netip.MustParseAddr("100.100.100.200"), // Alibaba
		netip.MustParseAddr("168.63.129.16"),   // Azure
		netip.MustParseAddr("192.0.0.192"),     // Oracle
	}
	// nat64 has IPv4 addresses in its last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// refused returns why no event is sent to an address. Plain says that only this host gets
// some.
func refused(a netip.Addr, plain bool) error {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		bytes := a.As16()
		a = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	switch {
	case a.IsLinkLocalUnicast(), slices.Contains(metadata, a):
		return fmt.Errorf("%s is link-local or a metadata service of a cloud, which gets no events", a)
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is not an address of one host", a)
	case plain && !a.IsLoopback():
		return fmt.Errorf("%s is another host, and http:// is not encrypted; use https://, or insecure: true", a)
	}
	return nil
}
