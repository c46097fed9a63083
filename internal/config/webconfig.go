package config

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

const (
	// verifiedClients is the client_auth_type that requires a verified
	// certificate of every client.
	verifiedClients = "RequireAndVerifyClientCert"
	// oldestTLS is the oldest version that is accepted.
	oldestTLS = tls.VersionTLS12

	tlsSection, usersSection = "tls_server_config", "basic_auth_users"
	// seeToolkit is what to do about a mistake that only the library knows.
	seeToolkit = "; see the documentation of Prometheus' exporter-toolkit"
)

// webConfig is one reading of a web configuration. The file belongs to Prometheus'
// exporter-toolkit, which checks it. Checked here is what its errors would repeat of
// a password or a key, what it accepts and we do not, and which right is missing.
type webConfig struct {
	*yamlfile.Report
	options Options
	root    *yaml.Node
}

func (w webConfig) check() {
	text, info, why := yamlfile.Read(w.File)
	if why != nil {
		w.RejectFile("", *why)
		return
	}
	w.root = w.Document(text, "the file is empty; use tls_server_config and basic_auth_users, or remove web-config",
		"this is not a web configuration; use keys such as tls_server_config: and basic_auth_users:")
	if w.root == nil {
		return
	}
	c, err := decodeWebConfig(text, filepath.Dir(w.File))
	if err != nil {
		w.unreadable(err)
		return
	}
	w.users(c)
	w.tls(c.TLSConfig)
	if c.TLSConfig.TLSKey != "" {
		w.options.warnOfReaders(w.Report, "", w.File, info)
	}
	if len(w.Problems) > 0 {
		return
	}
	if err := toolkit.Validate(w.File); err != nil {
		w.RejectAt(yamlfile.Start(), "", err.Error()+seeToolkit)
	}
}

// unreadable reports the lines that the parser cannot read. Its own texts repeat
// values.
func (w webConfig) unreadable(err error) {
	lines := []string{""} // A cipher or version that is unknown has none.
	if typed := new(yaml.TypeError); errors.As(err, &typed) {
		lines = typed.Errors
	}
	for _, text := range lines {
		place := yamlfile.Start()
		_, _ = fmt.Sscanf(text, "line %d:", &place.Line)
		w.RejectAt(place, "", "a key or value cannot be read"+seeToolkit)
	}
}

// at is the place of a key below a section.
func (w webConfig) at(section, key string) yamlfile.Origin {
	return yamlfile.Position(yamlfile.Child(yamlfile.Child(w.root, section), key))
}

// users checks that passwords are stored as hashes.
func (w webConfig) users(c *toolkit.Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Users)) {
		if _, err := bcrypt.Cost([]byte(c.Users[name])); err != nil {
			w.RejectAt(w.at(usersSection, name), "", `the password of this user is not a bcrypt hash; make one with: htpasswd -nBC 10 ""`)
		}
	}
}

// tls checks the oldest version, and that the files can be read: the library's errors
// do not say that a right is missing.
func (w webConfig) tls(t toolkit.TLSConfig) {
	if t.MinVersion < oldestTLS {
		w.RejectAt(w.at(tlsSection, "min_version"), "", "TLS before 1.2 is not safe; use TLS12 or TLS13")
	}
	for _, f := range []struct{ key, name string }{{"cert_file", t.TLSCertPath}, {"key_file", t.TLSKeyPath}, {"client_ca_file", t.ClientCAs}} {
		at := join(tlsSection, f.key)
		w.SetOrigin(at, w.at(tlsSection, f.key))
		if strings.Contains(f.name, "-----") {
			w.Reject(at, f.key+" is not the name of a file; name one, or use the text at "+strings.TrimSuffix(f.key, "_file"))
			continue
		}
		if f.name == "" {
			continue
		}
		_, info, why := yamlfile.Read(f.name)
		if why != nil {
			why.Text = f.name + ": " + why.Text
			w.RejectFile(at, *why)
		} else if f.key == "key_file" {
			w.options.warnOfReaders(w.Report, at, f.name, info)
		}
	}
}

// loadWebConfig reads a web configuration that [Load] has checked before, as its
// file is now.
func loadWebConfig(path string) (*toolkit.Config, error) {
	text, _, why := yamlfile.Read(path)
	if why != nil {
		return nil, errors.New("the file cannot be read")
	}
	c, err := decodeWebConfig(text, filepath.Dir(path))
	if err != nil {
		return nil, errors.New("the file cannot be read" + seeToolkit) // The parser repeats values.
	}
	return c, nil
}

// decodeWebConfig has the defaults of the library. Its errors repeat values.
func decodeWebConfig(text []byte, dir string) (*toolkit.Config, error) {
	c := &toolkit.Config{TLSConfig: toolkit.TLSConfig{MinVersion: oldestTLS, MaxVersion: tls.VersionTLS13}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, err //nolint:wrapcheck // It is not shown.
	}
	c.TLSConfig.SetDirectory(dir)
	return c, nil
}
