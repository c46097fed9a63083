package config

import (
	"errors"
	"net"
	"net/netip"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"
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
	return missingProtection(c)
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

// missingProtection says what a web configuration needs before other hosts may
// be let in; nil when it has all.
func missingProtection(c *toolkit.Config) error {
	t := c.TLSConfig
	byCertificate := t.ClientAuth == verifiedClients && (t.ClientCAs != "" || t.ClientCAsText != "")
	switch {
	case !t.IsEnabled():
		return errors.New("TLS is missing in it; write tls_server_config with cert_file and key_file")
	case t.MinVersion < oldestTLS:
		return errors.New("it allows TLS before 1.2; write min_version: TLS12")
	case len(c.Users) == 0 && !byCertificate:
		return errors.New("it has TLS and no authentication; write basic_auth_users, or client_auth_type: " +
			verifiedClients + " with a client_ca_file")
	}
	return nil
}
