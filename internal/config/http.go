package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// Local reports whether this host alone can reach the address: a loopback
// address, or localhost. Other names are not resolved: they are not local.
func (h HTTP) Local() bool {
	host, _, err := net.SplitHostPort(h.Listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Protected returns nil when the web configuration, as its file is now, asks every
// client for TLS and authentication; otherwise the error says what is missing.
func (h HTTP) Protected() error {
	if h.WebConfig == "" {
		return errors.New("there is no web-config")
	}
	c, err := loadWebConfig(h.WebConfig)
	if err != nil {
		return err
	}
	t := c.TLSConfig
	byCertificate := t.ClientAuth == verifiedClients && (t.ClientCAs != "" || t.ClientCAsText != "")
	switch {
	case !t.IsEnabled():
		return errors.New("TLS is missing in it; use tls_server_config with cert_file and key_file")
	case t.MinVersion < oldestTLS:
		return errors.New("it allows TLS before 1.2; set min_version: TLS12")
	case len(c.Users) == 0 && !byCertificate:
		return errors.New("it has TLS and no authentication; use basic_auth_users, or client_auth_type: " +
			verifiedClients + " with a client_ca_file")
	}
	return nil
}

// Exposed reports whether other hosts are let in without TLS or without
// authentication, because of Insecure. It reads the file of WebConfig.
func (h HTTP) Exposed() bool {
	return h.Listen != "" && h.Insecure && !h.Local() && h.Protected() != nil
}

// Plain reports whether a client on this host needs neither TLS nor a password
// for Listen. It reads the file of WebConfig; if it cannot be read, the
// result is false.
func (h HTTP) Plain() bool {
	if h.WebConfig == "" {
		return true
	}
	c, err := loadWebConfig(h.WebConfig)
	return err == nil && !c.TLSConfig.IsEnabled() && len(c.Users) == 0
}

// Scheme is that of a URL for Listen: http, or https with TLS. It reads the file of
// WebConfig.
func (h HTTP) Scheme() string {
	if h.WebConfig != "" {
		if c, err := loadWebConfig(h.WebConfig); err == nil && c.TLSConfig.IsEnabled() {
			return "https"
		}
	}
	return "http"
}

// httpChecker checks the section http, with the file that web-config names.
type httpChecker struct{ resolver }

func (c httpChecker) checkHTTP(h *HTTP) {
	c.checkListen(h.Listen)
	h.AllowedHosts = c.allowedHosts(h.AllowedHosts)
	if h.Socket = c.fileName("http.socket", h.Socket); c.OK("http.socket") {
		c.checkSocket(h.Socket)
	}
	if h.WebConfig = c.fileName("http.web-config", h.WebConfig); h.WebConfig != "" && c.OK("http.web-config") {
		w := webConfig{Report: yamlfile.NewReport(h.WebConfig), options: c.options}
		w.check()
		c.Include("http.web-config", w.Report)
	}
	if h.Listen != "" && c.OK("http.listen", "http.web-config", "http.insecure") {
		c.checkReach(*h)
	}
}

func (c httpChecker) checkListen(listen string) {
	if listen == "" {
		return
	}
	_, port, err := net.SplitHostPort(listen)
	if n, numErr := strconv.Atoi(port); err != nil || numErr != nil || n < 0 || n > 65535 {
		c.Reject("http.listen", quote(listen)+` is not an address; use host:port, for example 127.0.0.1:8080, or "" for none`)
	}
}

// checkReach refuses to let other hosts in without TLS and authentication,
// unless insecure is set.
func (c httpChecker) checkReach(h HTTP) {
	missing := h.Protected()
	switch safe := h.Local() || missing == nil; {
	case safe && h.Insecure:
		c.Warn("http.insecure", "insecure has no effect here, and takes effect unnoticed if listen or web-config changes; remove it")
	case safe:
	case h.Insecure && h.ShowPayload:
		c.Reject("http.show-payload", fmt.Sprintf("every host that can reach %s would see rows, without TLS or without authentication; set show-payload: false, "+
			"use a web-config with both, or listen on %s", quote(h.Listen), loopback(h.Listen)))
	case h.Insecure:
		c.Warn("http.insecure", fmt.Sprintf("every host that can reach %s sees the status page and the metrics, without TLS or without authentication; "+
			"use a web-config with both, or listen on %s", quote(h.Listen), loopback(h.Listen)))
	case h.WebConfig == "":
		c.Reject("http.listen", fmt.Sprintf("other hosts can reach %s; use %s, or a web-config with TLS and authentication, "+
			"or insecure: true where the network has no other users", quote(h.Listen), loopback(h.Listen)))
	default:
		c.Reject("http.web-config", fmt.Sprintf("other hosts can reach %s (listen), and this file does not protect it: %s", quote(h.Listen), missing))
	}
}

// loopback is the address that only this host reaches, with the same port.
func loopback(listen string) string {
	_, port, _ := net.SplitHostPort(listen)
	return net.JoinHostPort("127.0.0.1", port)
}

// checkSocket checks what can be told of a path without binding it.
func (c httpChecker) checkSocket(path string) {
	const key = "http.socket"
	most := len(syscall.RawSockaddrUnix{}.Path) - 1 // The kernel wants a zero after it.
	switch {
	case path == "":
	case strings.TrimSpace(path) != path || strings.ContainsFunc(path, unicode.IsControl):
		c.Reject(key, "socket has blanks around it or control characters in it; remove them")
	case strings.HasPrefix(path, "unix:") || strings.Contains(path, "://"):
		c.Reject(key, "this is a URL; use the path alone, such as /run/observerd/http.sock")
	case strings.HasPrefix(path, "@"):
		c.Reject(key, "this would be an abstract socket, which everyone may use; use a path, such as /run/observerd/http.sock")
	case len(path) > most:
		c.Reject(key, fmt.Sprintf("this path has %d bytes, and that of a Unix socket at most %d; use a shorter one, such as /run/observerd/http.sock",
			len(path), most))
	}
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`)

// allowedHosts checks the names, and brings them into the form in which they
// are compared. A variable or flag has several in one text.
func (c httpChecker) allowedHosts(given []string) []string {
	const key = "http.allowed-hosts"
	var hosts []string
	for i, text := range given {
		at := key
		if c.LayerOf(key) == yamlfile.FromFile {
			at = fmt.Sprintf("%s[%d]", key, i)
		}
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			switch _, err := netip.ParseAddr(name); {
			case err == nil:
				c.Warn(at, quote(name)+" is an address, and addresses are always allowed; remove it")
			case !hostPattern.MatchString(name):
				c.Reject(at, quote(name)+" is not the name of a host; use the name alone, such as metrics.example.org, without scheme, port, path and wildcard, and other alphabets as xn--…")
			default:
				hosts = append(hosts, name)
			}
		}
	}
	return hosts
}
