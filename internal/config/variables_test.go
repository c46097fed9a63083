package config_test

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestEveryKeyTakesVariables writes a variable that is not set at every key. The
// mistake names the variable and the place, and no other follows from it.
func TestEveryKeyTakesVariables(t *testing.T) {
	t.Parallel()
	for _, key := range config.Keys(wiring.Kinds()) {
		name := strings.NewReplacer("<name>", "warehouse", "<type>", "order").Replace(key.Name)
		text := strings.Replace(minimal, "sqlite:var/warehouse.db", "postgres://app@h/db", 1) // It may have a password-file.
		environment, where := environ(config.EnvName(name)+"=a${NOT_SET}"), config.EnvName(name)
		if list, item, ok := strings.Cut(name, "[]."); ok {
			value := `"a${NOT_SET}"`
			if key.Unit == "drop, hash, mask" || key.Unit == "keys" || name == "sinks[].headers" {
				value = "{c/d: " + value + "}"
			}
			if section, inner, ok := strings.Cut(item, "."); ok {
				item, value = section, "{"+inner+": "+value+"}"
			}
			text, environment, where = withItem(t, list, item+": "+value), environ(), "config.yaml:"
		}
		got, want := refuse(t, text, environment), "the variable NOT_SET is not set; set it in the environment, or use "
		if key.Unit == "SQL" {
			want = "query takes no variables"
		}
		if !strings.HasPrefix(got, where) || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// withItem returns a configuration whose list has an entry with that key.
func withItem(t *testing.T, list, item string) string {
	t.Helper()
	entries := map[string]string{
		"observers":       "{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}",
		"sinks":           "{id: screen, type: file, path: a.jsonl}",
		"locks.policies":  "{id: p, max-ttl: 1h}",
		"locks.providers": "{id: payments, type: redis, url: redis://cache}",
	}
	key, _, _ := strings.Cut(item, ":")
	if key == "redact-key-file" {
		item += ", redact: {c: hash}"
	}
	entry, ok := entries[list]
	if !ok {
		t.Fatalf("no entry for %s", list)
	}
	if list == "locks.providers" && slices.Contains(strings.Fields("repository token token-file assignee ttl heartbeat branches budget workers"), key) {
		entries[list] = "{id: payments, type: github, repository: acme/tasks}"
		entry = entries[list]
	}
	if list == "locks.providers" && slices.Contains(strings.Fields("namespace kubeconfig context prefix names release"), key) {
		entries[list] = "{id: payments, type: kubernetes}"
		entry = entries[list]
	}
	if list == "sinks" && slices.Contains(strings.Fields("url url-file schema create"), key) {
		entries[list] = "{id: inbox, type: sql, url: postgres://app@h/db}"
		entry = entries[list]
	}
	if list == "sinks" && slices.Contains(strings.Fields("brokers topic positions-topic partitions replication compression security tls sasl"), key) {
		entries[list] = "{id: bus, type: kafka, brokers: kafka-1:9092, topic: orders}"
		entry = entries[list]
	}
	if key == "format" {
		entries["sinks"] = "{id: screen, type: stdout}"
		entry = entries[list]
	}
	if list == "sinks" && slices.Contains(strings.Fields("url url-file headers tls mode concurrency timeout insecure"), key) {
		entries["sinks"] = "{id: screen, type: webhook, url: https://shop}"
		entry = entries[list]
	}
	if key == "url-file" {
		entry = regexp.MustCompile(`, url: [^,}]*`).ReplaceAllString(entry, "")
	}
	if key == "query" {
		entry = strings.Replace(entry, "table: orders, ", "", 1)
	}
	entry = regexp.MustCompile(`([{ ])`+key+`: [^,}]*`).ReplaceAllString(entry, "${1}"+strings.ReplaceAll(item, "$", "$$"))
	if !strings.Contains(entry, item) {
		entry = strings.TrimSuffix(entry, "}") + ", " + item + "}"
	}
	entries[list] = entry
	if list != "locks.providers" {
		entries["locks.providers"] = ""
	}
	return "sources: {warehouse: {url: \"sqlite:w.db\"}}\nlocks: {policies: [" + entries["locks.policies"] + "], providers: [" + entries["locks.providers"] + "]}\nobservers:\n  - " +
		entries["observers"] + "\nsinks:\n  - " + entries["sinks"] + "\n"
}

const variable = `
node: {name: "${NODE:-a}-$${NODE}"}
scheduler:
  observer: {fixed-delay: "${POLL:-40s}", enabled: "${ON}", concurrency: "${MANY:-3}"}
  ${KIND:-returns}-observer: {}
sources:
  warehouse: {url: "sqlite:${DIR:-var}/warehouse.db", timezone: "${ZONE:-Europe/Berlin}"}
observers:
  - {id: "${TEAM}-orders", type: "${KIND:-returns}", source: warehouse, table: "${SCHEMA:-}${TBL:-orders}", event: E,
     key: ["${COLUMN:-a}", b], timestamp: updated_at, max-lookback: "${LOOK:-1}h", start: "${START:-now}"}
  - {id: quoted, type: order, source: warehouse, query: "SELECT $${A}$$ || '$' FROM a", key: a, timestamp: b}
sinks:
  - {id: lines, type: "${SINK:-file}", path: "${DIR:-var}/a.jsonl"}
`

func TestVariables(t *testing.T) {
	t.Parallel()
	text := strings.Replace(variable, "  ${KIND:-returns}-observer: {}\n", "  returns-observer: {enabled: true}\n", 1)
	cfg := load(t, text, environ("ON=false", "TEAM=red", "TBL=", "POLL=", "MANY=7", "ZONE=UTC"))
	o := cfg.Observers[0]
	if cfg.Node.Name != "a-${NODE}" || cfg.Scheduler.Enabled || cfg.Scheduler.FixedDelay != 40*time.Second || cfg.Scheduler.Concurrency != 7 {
		t.Errorf("configuration\n%+v", cfg)
	}
	if o.ID != "red-orders" || o.Type != "returns" || o.Table != "orders" || !slices.Equal(o.Key, []string{"a", "b"}) ||
		o.MaxLookback != time.Hour || o.Start != "now" {
		t.Errorf("observer %+v", o)
	}
	if got := cfg.Observers[1].Query; got != "SELECT $${A}$$ || '$' FROM a" {
		t.Errorf("query %s", got)
	}
	if s := cfg.Sources["warehouse"]; s.Timezone != "UTC" || s.URL.Path() != "var/warehouse.db" {
		t.Errorf("source %+v", s)
	}
	if got := cfg.Sinks[0].Written()["path"]; got != "var/a.jsonl" {
		t.Errorf("path %s", got)
	}
}

// A variable that changes is a key that changes: for a reload, and for the hash by which
// nodes are compared.
func TestChangedVariableIsAChangedKey(t *testing.T) {
	t.Parallel()
	text := strings.Replace(minimal, "table: orders", `table: "${TBL:-orders}"`, 1)
	plain, before := load(t, minimal), load(t, text, environ("TBL=orders"))
	after := load(t, text, environ("TBL=wms.orders"))
	if before.Hash() != plain.Hash() || config.Changed(plain, before) != nil {
		t.Error("a variable differs from its value written out")
	}
	if got := config.Changed(before, after); !slices.Equal(got, []string{"observers.orders.table"}) || before.Hash() == after.Hash() {
		t.Errorf("changed %v", got)
	}
}

// A value that a later place overrides needs no variables.
func TestVariableThatIsNotUsed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "log: {level: \"${NOT_SET}\"}\n"+minimal, environ("OBSERVERD_LOG_LEVEL=${LEVEL}", "LEVEL=debug"))
	if cfg.Log.Level != slog.LevelDebug {
		t.Errorf("level %s", cfg.Log.Level)
	}
}

// What is in a variable may be a secret that belongs to another key.
func TestMistakesDoNotRepeatVariables(t *testing.T) {
	t.Parallel()
	texts := []string{"log: {level: \"${PW}\"}\n" + minimal, "scheduler: {observer: {fixed-delay: \"${PW}\"}}\n" + minimal,
		strings.Replace(minimal, "key: order_id", `key: [order_id, "${PW} "]`, 1), strings.Replace(minimal, "key: order_id", `key: "${PW} "`, 1),
		strings.Replace(minimal, "source: warehouse", `source: "${PW}"`, 1), strings.Replace(minimal, "db\"}", `db", timezone: "${PW}"}`, 1),
		strings.Replace(minimal, "updated_at}", `updated_at, start: "${PW}"}`, 1), strings.Replace(minimal, "type: stdout", `type: "${PW}"`, 1)}
	for _, text := range texts {
		got := refuse(t, text, environ("PW="+canary))
		if strings.Contains(got, canary) || !strings.Contains(got, `"${PW}`) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
