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
	var unverified *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var hostname x509.HostnameError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &unverified) || errors.As(err, &unknown) || errors.As(err, &invalid) ||
		errors.As(err, &hostname) || errors.As(err, &record) || errors.As(err, &alert)
}
