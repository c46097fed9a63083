package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// RootCause is the error in which all others of a chain are wrapped.
func RootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// IsTLS reports whether one side did not believe the other's certificate, or only one
// of them spoke TLS.
func IsTLS(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.CertificateInvalidError)) || errors.As(err, new(x509.HostnameError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError))
}
