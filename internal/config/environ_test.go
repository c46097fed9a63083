package config_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

func TestEnvironmentOverFileAndFlagsOverBoth(t *testing.T) {
	t.Parallel()
	text := "log: {level: warn, format: json}\nscheduler: {observer: {fixed-delay: 40s}}\n" + minimal
	cfg := load(t, text, environ(
		"OBSERVERD_LOG_LEVEL=debug", "OBSERVERD_HTTP_LISTEN=", "OBSERVERD_DATABASE_POOL_SIZE=9",
		"OBSERVERD_SCHEDULER_OBSERVER_FIXED_DELAY=20000", "OBSERVERD_SCHEDULER_ORDER_OBSERVER_LOCK_TTL=50s",
		"OBSERVERD_SOURCES_WAREHOUSE_QUERY_TIMEOUT=7s", "HOME=/root",
	), func(o *config.Options) {
		o.Overrides = map[string]any{"log.level": "error", "database.pool-size": 12, "node.name": "n1",
			"scheduler.observer.enabled": false, "database.janitor-interval": 3 * time.Minute}
	})
	ty := cfg.Types()[0]
	if cfg.Log.Level != slog.LevelError || cfg.Log.Format != "json" || cfg.HTTP.Listen != "" || cfg.Database.PoolSize != 12 ||
		cfg.Node.Name != "n1" || cfg.Scheduler.Enabled || cfg.Database.JanitorInterval != 3*time.Minute {
		t.Errorf("configuration\n%+v", cfg)
	}
	if ty.Interval != 20*time.Second || ty.TTL != 50*time.Second {
		t.Errorf("type %+v", ty)
	}
	if got := cfg.Sources["warehouse"].QueryTimeout; got != 7*time.Second {
		t.Errorf("query-timeout %s", got)
	}
}

func TestEnvironmentSetsTypesAndSourcesOfTheFile(t *testing.T) {
	t.Parallel()
	text := `
sources: {north-hall: {url: "sqlite:w.db"}}
observers: [{id: r, type: stock-count, source: north-hall, table: r, key: k, timestamp: u, event: E}]
sinks: [{id: s, type: stdout}]
`
	cfg := load(t, text, environ("OBSERVERD_SCHEDULER_STOCK_COUNT_OBSERVER_ENABLED=false",
		"OBSERVERD_SOURCES_NORTH_HALL_URL=sqlite:other.db"))
	if cfg.Types()[0].Enabled || cfg.Sources["north-hall"].URL.Path() != "other.db" {
		t.Errorf("configuration\n%+v", cfg)
	}
}

func TestMistakesNameTheirVariableOrFlag(t *testing.T) {
	t.Parallel()
	got := refuse(t, "log: {level: loud}\n"+minimal, environ(
		"OBSERVERD_LOG_FORMAT=xml", "OBSERVERD_LOG_LEVL=debug", "OBSERVERD_SINKS_0_ID=x", "OBSERVERD_QUITE_UNKNOWN=1",
		"OBSERVERD_SOURCES_SHOP_URL=sqlite:x.db", "OBSERVERD_SCHEDULER_OBSERVER_LOCK_TTL=-1s",
		"OBSERVERD_DATABASE_URL=postgres://u:hunter2 @h/db", "OBSERVERD_DATABASE_POOL_SIZE=",
	), func(o *config.Options) {
		o.Overrides = map[string]any{"http.listen": 8080, "http.listn": "x", "observers": "x", "a b": 1, "node.name": " "}
		o.FlagNames = map[string]string{"http.listen": "--listen"}
	})
	want := `config.yaml:1:14: unknown value "loud"; use debug, info, warn or error
--listen: "8080" is not an address; use host:port, for example 127.0.0.1:8080, or "" for none
--set: there is no such key; see docs/configuration.md
--set http.listn: there is no such key; use http.listen
--set node.name: name has blanks around it or control characters in it; remove them
--set observers: observers and sinks are lists; set them in the file
OBSERVERD_DATABASE_POOL_SIZE: "" is not a number of connections from 2 to 200; use for example 8
OBSERVERD_DATABASE_URL: the URL cannot be read; use postgres://USER:PASSWORD@HOST:PORT/DATABASE, and in USER and PASSWORD %40 for @, %2F for /, %3A for :, %23 for #, %3F for ? and %25 for %
OBSERVERD_LOG_FORMAT: unknown value "xml"; use auto, tint or json
OBSERVERD_LOG_LEVL: this variable sets no key; use OBSERVERD_LOG_LEVEL
OBSERVERD_QUITE_UNKNOWN: this variable sets no key; remove it, or see the keys in docs/configuration.md
OBSERVERD_SCHEDULER_OBSERVER_LOCK_TTL: "-1s" is negative; use 1s
OBSERVERD_SINKS_0_ID: observers and sinks are lists; set them in the file
OBSERVERD_SOURCES_SHOP_URL: this variable sets no key; use OBSERVERD_SOURCES_WAREHOUSE_URL`
	if got != want {
		t.Errorf("reported\n%s\nwant\n%s", got, want)
	}
}

// In Kubernetes a service's name becomes variables of every container.
func TestVariablesOfKubernetesAreNoKeys(t *testing.T) {
	t.Parallel()
	load(t, minimal, environ(
		"OBSERVERD_SERVICE_HOST=10.0.0.1", "OBSERVERD_SERVICE_PORT=8080", "OBSERVERD_SERVICE_PORT_HTTP=8080",
		"OBSERVERD_PORT=tcp://10.0.0.1:8080", "OBSERVERD_PORT_8080_TCP=tcp://10.0.0.1:8080",
		"OBSERVERD_PORT_8080_TCP_PROTO=tcp", "OBSERVERD_PORT_8080_TCP_PORT=8080", "OBSERVERD_PORT_8080_TCP_ADDR=10.0.0.1",
		"OBSERVERD_METRICS_SERVICE_HOST=10.0.0.1", "OBSERVERD_METRICS_PORT_9090_TCP=tcp://10.0.0.1:9090",
	))
}

// TestEveryKeyHasItsVariable sets each key that is not in a list to a value it
// cannot have, and expects the mistake to name the variable.
func TestEveryKeyHasItsVariable(t *testing.T) {
	t.Parallel()
	anyText := map[string]bool{"database.url-file": true, "sources.<name>.url-file": true}
	for _, key := range config.Keys(wiring.Kinds()) {
		if strings.Contains(key.Name, "[]") || anyText[key.Name] {
			continue
		}
		name := strings.NewReplacer("<name>", "warehouse", "<type>", "order").Replace(key.Name)
		got := refuse(t, minimal, environ(config.EnvName(name)+"= \x01 "))
		if !strings.HasPrefix(got, config.EnvName(name)+": ") || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoKeyTakesWhatIsNoText sets each key that is not in a list to a byte that is no UTF-8,
// which PostgreSQL refuses, by its variable and by a variable in the file.
func TestNoKeyTakesWhatIsNoText(t *testing.T) {
	t.Parallel()
	for _, key := range config.Keys(wiring.Kinds()) {
		if strings.Contains(key.Name, "[]") || key.Unit == "file name" {
			continue
		}
		name := strings.NewReplacer("<name>", "warehouse", "<type>", "order").Replace(key.Name)
		if got := refuse(t, minimal, environ(config.EnvName(name)+"=a\xff")); !strings.HasPrefix(got, config.EnvName(name)+": ") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
	const text = "cluster: {name: \"${NAME}\"}\nlocks: {region: \"${NAME}\", subjects: [\"${NAME}\"]}\n"
	want := `config.yaml:1:17: name is not UTF-8; use printable text
config.yaml:2:17: region is not UTF-8; use printable text
config.yaml:2:39: subjects is not UTF-8; use printable text`
	if got := refuse(t, text+minimal, environ("NAME=a\xff")); got != want {
		t.Errorf("reported\n%s\nwant\n%s", got, want)
	}
}
