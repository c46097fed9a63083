package mysql_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// certificate writes one that names 127.0.0.1 and its key where the user that
// runs the server can read them, and returns their paths.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "mysql-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "shop"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"ssl-cert": cert, "ssl-key": key, "require-secure-transport": "OFF"}})
	address := server.New(t)
	encrypted := observer.Query{SQL: "SELECT VARIABLE_VALUE AS id FROM information_schema.session_status WHERE VARIABLE_NAME = 'Ssl_cipher'", Key: []string{"id"}}
	for parameters, want := range map[string]struct {
		class     observer.Class
		encrypted bool
	}{
		"":                                  {"", false},
		"?tls=false":                        {"", false},
		"?ssl-ca=" + cert:                   {"", true},
		"?tls=true&ssl-ca=" + cert:          {"", true},
		"?tls=skip-verify":                  {"", true},
		"?tls=preferred":                    {"", true},
		"?tls=true":                         {observer.ClassSettings, true},
		"?ssl-server-name=a&ssl-ca=" + cert: {observer.ClassSettings, true},
	} {
		s := open(t, mysql.Options{URL: address + parameters})
		if _, err := s.Identity(t.Context()); observer.ClassOf(err) != want.class {
			t.Errorf("%s: %v, want class %q", parameters, err, want.class)
			continue
		}
		if want.class != "" {
			continue
		}
		rows := sourcetest.ReadAll(t, s, encrypted, observer.Range{})
		if len(rows) != 1 || (rows[0].Key != "") != want.encrypted {
			t.Errorf("%s: %+v, want it encrypted: %t", parameters, rows, want.encrypted)
		}
	}
}
