// Package webtest makes certificates and web configurations for tests of what
// is served over TLS.
package webtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Authority signs certificates of servers on this host and of their clients.
type Authority struct {
	t           testing.TB
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

// NewAuthority makes one that lives as long as the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, key := a.sign(template)
	a.certificate, a.key = certificate, key
	return a
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Transport trusts the authority, and keeps no connection.
func Transport(a *Authority) *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableKeepAlives: true}
}

// WriteAuthority writes the authority's certificate and returns the path.
func (a *Authority) WriteAuthority(dir string) string {
	a.t.Helper()
	return write(a.t, dir, "ca.pem", block("CERTIFICATE", a.certificate.Raw))
}

// WriteServer writes a certificate for 127.0.0.1 and localhost, with its key,
// to server.pem and server.key. The name tells one from another.
func (a *Authority) WriteServer(dir, name string) {
	a.t.Helper()
	certificate, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	write(a.t, dir, "server.pem", block("CERTIFICATE", certificate.Raw))
	write(a.t, dir, "server.key", a.keyBlock(key))
}

// Client returns a client's certificate.
func (a *Authority) Client() tls.Certificate {
	a.t.Helper()
	certificate, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "client"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	pair, err := tls.X509KeyPair(block("CERTIFICATE", certificate.Raw), a.keyBlock(key))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// sign makes a certificate of the template; the first signs itself.
func (a *Authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

func (a *Authority) keyBlock(key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return block("PRIVATE KEY", raw)
}

// TLS is the section of a web configuration for what [Authority.WriteServer] writes
// beside it.
const TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"

// User is the section of a web configuration for a user, with a cheap hash.
func User(t testing.TB, name, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return "basic_auth_users: {" + name + ": \"" + string(hash) + "\"}\n"
}

// WriteConfig writes a web configuration and returns the path. It replaces the
// file in one step, as whoever does so at work should.
func WriteConfig(t testing.TB, dir, text string) string {
	t.Helper()
	return write(t, dir, "web.yml", []byte(text))
}

func block(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func write(t testing.TB, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}
