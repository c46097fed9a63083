package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"
)

// ErrSetting is wrapped by an error of [New] when a setting does not suit this
// host, as a port in use, so that trying again cannot help. A right that is
// missing is fs.ErrPermission instead.
var ErrSetting = errors.New("setting cannot be used")

// settingError makes an error an [ErrSetting] without changing its text.
type settingError struct{ error }

func (settingError) Is(target error) bool { return target == ErrSetting }

func (e settingError) Unwrap() error { return e.error }

// openAddress listens on the TCP address, if there is one.
func (s *Server) openAddress(ctx context.Context) error {
	o := s.options
	if o.Listen == "" {
		return nil
	}
	if err := toolkit.Validate(o.WebConfig); err != nil {
		return settingError{fmt.Errorf("http.web-config: %w", err)}
	}
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return explainListen(o.Listen, err)
	}
	tcp = netutil.LimitListener(tcp, maxConnections) // Refused clients hold a connection, too.
	l := &listener{Listener: tcp, http: s.newServer(s.addressHandler(tcp.Addr()))}
	l.serve = func() error {
		return toolkit.Serve(tcp, l.http, &toolkit.FlagConfig{WebConfigFile: &o.WebConfig}, slog.New(fromWarning{o.Logger.Handler()}))
	}
	s.listeners, s.address = append(s.listeners, l), tcp.Addr().String()
	if required := s.protection(tcp.Addr()); required != nil {
		if err := required(); err != nil {
			return settingError{fmt.Errorf("http.listen: other hosts can reach %s, and the web configuration does not protect it: %w", s.address, err)}
		}
	}
	return nil
}

// protection returns the check that requests to the address must pass; nil: none. The
// address that is listened on decides, not the text of the configuration.
func (s *Server) protection(address net.Addr) func() error {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return nil
	}
	return s.options.Protected
}

// explainListen says what to do about an address that cannot be listened on.
func explainListen(address string, err error) error {
	switch unknown, is := errors.AsType[*net.DNSError](err); {
	case errors.Is(err, syscall.EADDRINUSE):
		return settingError{fmt.Errorf("http.listen: another process listens on %s; stop it (ss -ltnp shows it), or use another port: %w", address, err)}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("http.listen: this user may not listen on %s; use a port from 1024 up, or give the service the capability "+
			"CAP_NET_BIND_SERVICE: %w", address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return settingError{fmt.Errorf("http.listen: this host does not have the address of %s; use one that it has (ip address shows them), or 127.0.0.1: %w",
			address, err)}
	case is && unknown.IsNotFound:
		return settingError{fmt.Errorf("http.listen: no host has the name in %s; use an address of this host, or 127.0.0.1: %w", address, err)}
	}
	return fmt.Errorf("http.listen: %w", err)
}

// fromWarning leaves out the records of the library about each start.
type fromWarning struct{ slog.Handler }

// Enabled leaves out what is below a warning.
func (h fromWarning) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
