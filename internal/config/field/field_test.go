package field_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/test/kit/webtest"
)

const canary = "c4n4ry"

func TestURLsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://h":                             "https://h",
		"https://h:8443/":                       "https://h:8443/",
		"http://u:c4n4ry@h/services/c4n4ry?t=1": "http://u:xxxxx@h/xxxxx?xxxxx",
		"https://h/c4n4ry%2Fc4n4ry":             "https://h/xxxxx",
		"redis://:c4n4ry@h:6379/0":              "redis://:xxxxx@h:6379/0",
		"redis://u@h":                           "redis://u@h",
		"nats://c4n4ry@h:4222":                  "nats://xxxxx@h:4222",
		"nats://u:c4n4ry@h":                     "nats://u:xxxxx@h",
		"https://c4n4ry@h":                      "https://xxxxx@h",
		"postgres://u@h/db?sslpassword=c4n4ry":  "postgres://u@h/db?xxxxx",
	} {
		var u field.URL
		if err := u.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(struct{ U field.URL }{u})
		if err != nil {
			t.Fatal(err)
		}
		printed := fmt.Sprintf("%v %s %+v %#v %q %s", u, u, struct{ u field.URL }{u}, u, u, asJSON)
		if u.String() != want || u.Reveal() != text || strings.Contains(printed, canary) {
			t.Errorf("%s is shown as %s, want %s; printed %s", text, u, want, printed)
		}
	}
}

// TestTemplatesRepeatNoData fails in each way in which the library's errors speak of data.
func TestTemplatesRepeatNoData(t *testing.T) {
	t.Parallel()
	data := map[string]any{"a": canary, "list": []string{canary}, "map": map[string]string{canary: canary}, "bad": func() {}}
	for text, want := range map[string]string{
		"{{.a}} {{json .list}}": canary + ` ["` + canary + `"]`,
		"x\n{{.b}}":             "line 2 of the template: <.b> has no value here",
		"{{.a.b}}":              "line 1 of the template: <.a.b> has no value here",
		"{{index .list 7}}":     "line 1 of the template: <index .list 7> has no value here",
		"{{index .map 1}}":      "line 1 of the template: <index .map 1> has no value here",
		"{{slice .a 1 99}}":     "line 1 of the template: <slice .a 1 99> has no value here",
		"{{json .bad}}":         "line 1 of the template: <json .bad> has no value here",
		"{{lt .a 1}}":           "line 1 of the template: <lt .a 1> has no value here",
	} {
		var tmpl field.Template
		if err := tmpl.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Execute(data)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got, err := (field.Template{}).Execute(data); got != "" || err != nil {
		t.Errorf("no template makes %q, %v", got, err)
	}
}

// TestTLSReadsItsFilesAgain replaces a certificate.
func TestTLSReadsItsFilesAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	authority := webtest.NewAuthority(t)
	authority.WriteServer(folder, "first")
	settings := field.TLS{CertFile: filepath.Join(folder, "server.pem"), KeyFile: filepath.Join(folder, "server.key")}
	name := func() string {
		c, err := settings.Config()
		if err != nil {
			t.Fatal(err)
		}
		return c.Certificates[0].Leaf.Subject.CommonName
	}
	first := name()
	authority.WriteServer(folder, "second")
	if second := name(); first != "first" || second != "second" {
		t.Errorf("certificates %s and %s", first, second)
	}
	if err := os.Remove(settings.KeyFile); err != nil {
		t.Fatal(err)
	}
	if c, err := settings.Config(); err == nil || c != nil {
		t.Errorf("without its key: %v, %v", c, err)
	}
	settings = field.TLS{CAFile: settings.KeyFile}
	if c, err := settings.Config(); err == nil || c != nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no certificate") {
		t.Errorf("without its authority: %v, %v", c, err)
	}
}
