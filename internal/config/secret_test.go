package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/wiring"
)

const canary = "c4n4ry"

// withSecrets has the canary in every place that may hold a secret.
func withSecrets(t *testing.T) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("postgres://u:"+canary+"@file/db\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat(canary, 6)), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, `
database: {url: "postgres://u:${PW}@db:5432/observerd?sslmode=require&sslpassword=c4n4ry&options=c4n4ry"}
sources:
  warehouse: {url-file: "`+file+`"}
  plain: {url: "postgres:///wms?host=/run/pg&user=u&password=c4n4ry"}
  lead: {url: "postgres://u@h/a$${b"}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
  - {id: hashed, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at, redact: {name: hash}, redact-key-file: "`+key+`"}
sinks:
  - {id: screen, type: stdout}
`, environ("PW="+canary))
}

func TestSecretsReachTheDriver(t *testing.T) {
	t.Parallel()
	cfg := withSecrets(t)
	for got, want := range map[string]string{
		cfg.Database.URL.Reveal():             "postgres://u:" + canary + "@db:5432/observerd?sslmode=require&sslpassword=c4n4ry&options=c4n4ry",
		cfg.Sources["warehouse"].URL.Reveal(): "postgres://u:" + canary + "@file/db",
		cfg.Sources["lead"].URL.Reveal():      "postgres://u@h/a${b",
		cfg.Observers[1].HashKey().Reveal():   strings.Repeat(canary, 6),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	cfg := withSecrets(t)
	secret := field.NewSecret(canary)
	// Unexported fields are read by fmt past every method.
	inside := struct {
		cfg    config.Config
		url    config.URL
		secret field.Secret
	}{*cfg, cfg.Database.URL, secret}
	printed := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for i, value := range []any{cfg, *cfg, cfg.Database, cfg.Database.URL, &cfg.Database.URL, secret, &secret, inside} {
			printed[fmt.Sprintf("%s of %d", verb, i)] = fmt.Sprintf(verb, value)
		}
	}
	for i, value := range []any{cfg, *cfg, cfg.Database, secret, cfg.Sources} {
		asJSON, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "value", value)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "value", value)
		printed[fmt.Sprintf("JSON of %d", i)] = string(asJSON)
		printed[fmt.Sprintf("YAML of %d", i)] = string(asYAML)
		printed[fmt.Sprintf("log of %d", i)] = logged.String()
	}
	hexCanary := fmt.Sprintf("%x", canary)
	for how, text := range printed {
		if strings.Contains(text, canary) || strings.Contains(text, hexCanary) {
			t.Errorf("%s holds the secret: %s", how, text)
		}
	}
}

func TestRedactedURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:p@h:5432/db?sslmode=require":        "postgres://u:xxxxx@h:5432/db?sslmode=require",
		"postgresql://u@h/db":                             "postgres://u@h/db",
		"postgres://h/db?password=p&user=u&x.y=z":         "postgres://h/db?password=xxxxx&user=u&x.y=xxxxx",
		"postgres:///db?host=/run/pg":                     "postgres:///db?host=%2Frun%2Fpg",
		"sqlite:var/./a.db":                               "sqlite:var/a.db",
		"sqlite:///var/lib/a.db":                          "sqlite:/var/lib/a.db",
		"postgres://u:p%40%2F@h1:1,h2:2/db?sslkey=/k.pem": "postgres://u:xxxxx@h1:1,h2:2/db?sslkey=xxxxx",
	} {
		u, err := wiring.Kinds().Servers.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if u.String() != want {
			t.Errorf("%s is shown as %s, want %s", text, u, want)
		}
	}
}
