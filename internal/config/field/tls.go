package field

import (
	"crypto/tls"
	"crypto/x509"
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

// Check reports files that cannot be used, or lack one another.
func (t TLS) Check(r Report) {
	if key, err := t.build(new(tls.Config)); err != nil {
		r.Reject(key, err.Error())
	}
}

// Config returns the settings of a client. The files are read each time, so that
// certificates can be replaced.
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	_, err := t.build(c)
	return c, err
}

// build returns with an error the key that it is about.
func (t TLS) build(c *tls.Config) (key string, err error) {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		return "cert-file", fmt.Errorf("cert-file has no key; write key-file as well")
	case t.CertFile == "" && t.KeyFile != "":
		return "key-file", fmt.Errorf("key-file has no certificate; write cert-file as well")
	}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return "ca-file", err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return "ca-file", fmt.Errorf("the file of ca-file holds no certificate in PEM; write one into it, from -----BEGIN CERTIFICATE----- on")
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return "cert-file", fmt.Errorf("cert-file and key-file cannot be used: %w; name a certificate and its key, both in PEM and without a password", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return "", nil
}
