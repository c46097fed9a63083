package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// protected refuses requests while the web configuration does not ask for TLS
// and authentication: it may have been changed since the start.
func (s *Server) protected(required func() error, next http.Handler) http.Handler {
	var logged atomic.Bool // Once: otherwise every client could fill the log.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := required()
		if err == nil && r.TLS != nil {
			logged.Store(false)
			next.ServeHTTP(w, r)
			return
		}
		if !logged.Swap(true) {
			s.options.Logger.Error("Requests are refused until it is fixed: http.web-config does not protect the address any more", "err", err)
		}
		refuse(w, http.StatusServiceUnavailable, "http.web-config does not protect this address any more; the log says why")
	})
}

// knownHosts refuses requests whose Host is not a name of this node. A foreign page
// can make a browser resolve the page's own host name to our address (DNS rebinding)
// and could then read our answers; it cannot make the browser send another Host. Only
// a client that is not a browser sends none.
func (s *Server) knownHosts(next http.Handler) http.Handler {
	names := s.hostNames()
	var logged sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "" || known(names, r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		host := r.Host[:min(len(r.Host), 100)]
		logged.Do(func() {
			s.options.Logger.Warn("Request refused: it names a host that is not among http.allowed-hosts; further ones are refused without a record", "host", host)
		})
		refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("%q is not a name of this node: ask by address, or use the name at http.allowed-hosts", host))
	})
}

// hostNames are the names by which the TCP address may be asked.
func (s *Server) hostNames() map[string]bool {
	names := map[string]bool{"localhost": true}
	if host, _, err := net.SplitHostPort(s.options.Listen); err == nil && host != "" {
		names[plainName(host)] = true
	}
	if host, err := os.Hostname(); err == nil { // Without, its name is not allowed.
		names[plainName(host)] = true
	}
	for _, host := range s.options.AllowedHosts {
		names[plainName(host)] = true
	}
	return names
}

// known reports whether the host of a request, with or without a port, is an
// address or one of the names.
func known(names map[string]bool, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return names[plainName(host)]
}

func plainName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
