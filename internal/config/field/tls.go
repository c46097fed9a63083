package field

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS is a section that says by what a server is known, and this client to it.
type TLS struct {
	// CAFile has the certificates, in PEM, of those who sign that of the server.
	// Default: those of the system.
	CAFile string `key:"ca-file" shown:"those of the system" unit:"file name" holds:"certificate"`
	// CertFile and KeyFile are the certificate of this client and its key, in PEM.
	// Default: none.
	CertFile string `key:"cert-file" unit:"file name" holds:"certificate"`
	KeyFile  string `key:"key-file" unit:"file name" holds:"key"`
	// ServerName is the name in the server's certificate. Default: the host that is
	// connected to.
	ServerName string `key:"server-name" shown:"the host" unit:"name of a host"`
}

// Check reports files that cannot be used.
func (t TLS) Check(r Report) {
	switch _, err := t.Config(); {
	case errors.Is(err, errAuthority):
		r.Reject("ca-file", err.Error())
	case err != nil:
		r.Reject("cert-file", err.Error())
	}
}

var errAuthority = errors.New("ca-file has no certificate in PEM; add one, which begins with -----BEGIN CERTIFICATE-----")

// Config returns the settings of a client. The files are read each time, so that
// certificates can be replaced.
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		c.RootCAs = x509.NewCertPool()
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file cannot be read: %w", err)
		}
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errAuthority
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("cert-file and key-file belong together; set both, or none")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert-file and key-file cannot be used: %w; name a certificate and its key, both in PEM and without a password", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
