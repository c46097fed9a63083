package webhook

import (
	"net"
	"net/http"
)

// Settings are those of a section of the configuration, and Signing one of its secrets.
type (
	Settings = settings
	Signing  = signing
)

// Refused is for a table of addresses.
var Refused = refused

// OpenBehind opens a sink that asks another server for names.
func OpenBehind(o Options, names *net.Resolver) *Sink {
	s := Open(o)
	d := dialer(o)
	d.Resolver = names
	s.client.Transport.(*http.Transport).DialContext = d.DialContext
	return s
}

// OpenOver opens a sink that sends its requests by another way.
func OpenOver(o Options, way http.RoundTripper) *Sink {
	s := Open(o)
	s.client.Transport = way
	return s
}
