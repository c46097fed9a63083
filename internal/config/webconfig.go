package config

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// webConfig is one reading of a web configuration. The file belongs to
// Prometheus' exporter-toolkit, whose types are its schema and whose Validate
// decides in the end; but its errors name no line, and repeat passwords.
type webConfig struct {
	*yamlfile.Report
	options Options
	// written is the name of the file as its key has it.
	written string
}

// check reports every mistake, with its place in the file.
func (w webConfig) check() {
	text, info, why := yamlfile.Read(w.File)
	if why != nil {
		w.RejectFile("", forCredential(w.written, *why))
		return
	}
	root := w.Document(text, "the file is empty; write tls_server_config and basic_auth_users, or remove web-config",
		"this is not a web configuration; write keys such as tls_server_config: and basic_auth_users:")
	if root == nil {
		return
	}
	w.section(root, reflect.TypeFor[toolkit.Config](), "")
	if len(w.Problems) > 0 {
		return
	}
	c, err := decodeWebConfig(text, filepath.Dir(w.File))
	if err != nil {
		w.RejectAt(yamlfile.Start(), "", err.Error())
		return
	}
	w.users(c)
	w.tls(c.TLSConfig)
	if c.TLSConfig.TLSKey != "" {
		w.options.warnOfReaders(w.Report, join(tlsSection, "key"), w.File, info)
	}
	if len(w.Problems) == 0 {
		w.validate()
	}
}

// validate lets the library check the file.
func (w webConfig) validate() {
	err := toolkit.Validate(w.File)
	if err == nil {
		return
	}
	text := err.Error()
	if strings.HasPrefix(text, "yaml:") {
		text = "the file cannot be read" // The parser repeats values.
	}
	w.RejectAt(yamlfile.Start(), "", text+"; see the documentation of Prometheus' exporter-toolkit")
}

// section checks a mapping against the struct that the library reads it into.
func (w webConfig) section(n *yaml.Node, t reflect.Type, path string) {
	known, names := make(map[string]reflect.Type), []string(nil)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		known[name], names = t.Field(i).Type, append(names, name)
	}
	w.Entries(n, path, func(key, value *yaml.Node) {
		typ, ok := known[key.Value]
		if !ok {
			w.RejectAt(yamlfile.Position(key), "", "unknown key "+yamlfile.QuoteKey(key.Value)+"; "+suggestion(key.Value, names))
			return
		}
		at := join(path, key.Value)
		w.SetOrigin(at, yamlfile.Position(key))
		w.value(value, typ, at)
	})
}

// value checks a value against its type. Its text is not repeated: it may be a
// password or a key.
func (w webConfig) value(n *yaml.Node, t reflect.Type, path string) {
	switch {
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		w.section(n, t, path)
	case t.Kind() == reflect.Struct && yamlfile.IsNull(n): // A section without keys.
	case t.Kind() == reflect.Struct:
		w.Reject(path, yamlfile.LastKey(path)+" is a section; write its keys below it")
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode && !w.names(n, path): // One of them was reported.
	case n.Decode(reflect.New(t).Interface()) != nil:
		w.Reject(path, yamlfile.LastKey(path)+" cannot be read; write "+webValue(t))
	}
}

// names notes where the entries of a mapping are, and reports those that are
// there twice. Then it returns false.
func (w webConfig) names(n *yaml.Node, path string) bool {
	before := len(w.Problems)
	w.Entries(n, path, func(key, _ *yaml.Node) { w.SetOrigin(join(path, key.Value), yamlfile.Position(key)) })
	return len(w.Problems) == before
}

// webValue says how a value of a type is written.
func webValue(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[toolkit.TLSVersion]():
		return "TLS12 or TLS13"
	case reflect.TypeFor[[]toolkit.Cipher]():
		return "a list of Go's names of secure suites, such as TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, or remove it"
	case reflect.TypeFor[[]toolkit.Curve]():
		return "a list of CurveP256, CurveP384, CurveP521 and X25519, or remove it"
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 1s"
	case reflect.TypeFor[map[string]promconfig.Secret]():
		return "NAME: HASH for each user below it"
	}
	words := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.Int: "a number", reflect.Slice: "a list of texts",
		reflect.Map: "NAME: TEXT for each header below it",
	}
	return cmp.Or(words[t.Kind()], "one text")
}

// users checks that passwords are stored as hashes.
func (w webConfig) users(c *toolkit.Config) {
	for name, hash := range c.Users {
		if _, err := bcrypt.Cost([]byte(hash)); err != nil {
			w.Reject(join("basic_auth_users", name), `the password of this user is not a bcrypt hash; make one with: htpasswd -nBC 10 ""`)
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
	return decodeWebConfig(text, filepath.Dir(path))
}

// decodeWebConfig has the defaults of the library.
func decodeWebConfig(text []byte, dir string) (*toolkit.Config, error) {
	c := &toolkit.Config{TLSConfig: toolkit.TLSConfig{MinVersion: oldestTLS, MaxVersion: tls.VersionTLS13}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New("the file cannot be read; see the documentation of Prometheus' exporter-toolkit") // The parser repeats values.
	}
	c.TLSConfig.SetDirectory(dir)
	return c, nil
}
