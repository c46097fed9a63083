package pgsession

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// WordedError is an error in our words, for all to see. What it wraps, with those of a server or
// the driver, is for decisions alone.
type WordedError struct {
	Text string
	Err  error
}

func (e *WordedError) Error() string { return e.Text }

// Unwrap returns the error that was worded.
func (e *WordedError) Unwrap() error { return e.Err }

// WordSession says in one line why there is no session, where the driver's own error has a line
// for each attempt. key is where the configuration has the URL. Every error but that of a
// connection that could not be made stays as it is, and so do attempts that are one of own.
func WordSession(err error, key string, own ...error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	tried := Attempts(err)
	var reasons []string
	for _, attempt := range tried {
		// Where TLS is preferred only, what counts is how it ended without.
		if noTLS(attempt) && slices.ContainsFunc(tried, func(other error) bool {
			return !noTLS(other) && HostOf(other) == HostOf(attempt)
		}) {
			continue
		}
		reason := placed(attempt) + reasonOf(attempt, key, own)
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	who := fmt.Sprintf("no session as %s on database %s", connect.Config.User, connect.Config.Database)
	return &WordedError{Text: who + strings.Join(reasons, "; nor"), Err: err}
}

// noTLS reports whether a server answered that it has no TLS. pgx has no type for it.
func noTLS(attempt error) bool {
	return strings.HasSuffix(attempt.Error(), "server refused TLS connection")
}

// placed is where an attempt went, as the URL has it; see [HostOf].
func placed(attempt error) string {
	where, _, found := strings.Cut(attempt.Error(), "): ")
	address, host, named := strings.Cut(where, " (")
	switch {
	case !found || !named: // The context had ended, for example.
		return ": "
	case strings.HasPrefix(host, "/"):
		return " at " + address + ": " // A socket.
	}
	return " at " + host + address[strings.LastIndexByte(address, ':'):] + ": "
}

// reasonOf says why an attempt failed, and what to look at.
func reasonOf(attempt error, key string, own []error) string {
	var server *pgconn.PgError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case slices.ContainsFunc(own, func(e error) bool { return errors.Is(attempt, e) }):
		return cause(attempt)
	case errors.As(attempt, &server):
		return serverReason(server, key)
	case errors.As(attempt, &dns):
		return "the name " + dns.Name + " cannot be resolved; is the host right in " + key + "?"
	case isCertificate(attempt):
		return cause(attempt) + "; see sslmode, sslrootcert and the host's name in " + key
	case noTLS(attempt):
		return "the server has no TLS, and sslmode in " + key + " asks for it"
	case errors.As(attempt, &timeout) && timeout.Timeout(), errors.Is(attempt, context.DeadlineExceeded):
		return "no answer in time; are host and port right in " + key + ", and open in the firewall?"
	case errors.Is(attempt, syscall.ECONNREFUSED):
		return "connection refused; does the server run, and are host and port right in " + key + "?"
	case errors.Is(attempt, io.EOF), errors.Is(attempt, io.ErrUnexpectedEOF), errors.Is(attempt, syscall.ECONNRESET):
		return "the connection was closed; is it PostgreSQL that listens there?"
	case IsForeign(attempt):
		return "the server does not answer as PostgreSQL does; are host and port right in " + key + "?"
	}
	return cause(attempt)
}

// serverReason is the server's refusal of a session, with what to correct.
func serverReason(server *pgconn.PgError, key string) string {
	text := fmt.Sprintf("%s (SQLSTATE %s)", strings.Join(strings.Fields(server.Message), " "), server.Code)
	switch {
	case server.Code == "28P01":
		return text + "; correct the role or its password in " + key
	case strings.HasPrefix(server.Code, "28"):
		return text + "; correct the role in " + key + ", or pg_hba.conf of the server"
	case server.Code == "3D000":
		return text + "; make it, or correct its name in " + key
	case server.Code == "42704":
		return text + "; take it out of " + key + ", or use PostgreSQL 12 or later"
	}
	return text
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &authority) || errors.As(err, &host)
}

// cause is the text of an attempt without its place and the driver's own step.
func cause(attempt error) string {
	text := attempt.Error()
	if _, rest, found := strings.Cut(text, "): "); found {
		text = rest
	}
	for _, step := range []string{"ValidateConnect failed: ", "tls error: ", "dial error: "} {
		text = strings.TrimPrefix(text, step)
	}
	if strings.Contains(text, "://") {
		return "the connection failed" // A URL may hold a password.
	}
	return strings.Join(strings.Fields(text), " ")
}

// Attempts are the errors of a connection that could not be made: one for each
// host that was tried, each of its addresses, and each way with and without TLS;
// none for every other error.
func Attempts(err error) []error {
	var joined interface{ Unwrap() []error }
	var connect *pgconn.ConnectError
	switch {
	case !errors.As(err, &connect):
		return nil
	case errors.As(connect.Unwrap(), &joined):
		return joined.Unwrap()
	}
	return []error{connect.Unwrap()}
}

// HostOf is the host of the URL, with its port, to which an attempt went. The
// addresses of one name count as one server, and so do its ways with and without
// TLS: a server without TLS says no to the one and answers the other. pgx begins
// each attempt with "address:port (host): ", and tells it in no other way.
func HostOf(attempt error) string {
	where, _, _ := strings.Cut(attempt.Error(), ": ")
	address, host, _ := strings.Cut(where, " (")
	return host + address[strings.LastIndexByte(address, ':')+1:]
}
