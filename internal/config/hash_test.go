package config_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

func TestHash(t *testing.T) {
	t.Parallel()
	base := load(t, minimal).Hash()
	if !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(base) {
		t.Errorf("hash %q", base)
	}
	source := func(password string) string {
		return load(t, strings.Replace(minimal, "sqlite:var/warehouse.db", "postgres://u:"+password+"@h/db", 1)).Hash()
	}
	if source("one") != source("two") {
		t.Error("the hash tells passwords apart")
	}
	for _, same := range []string{
		"node: {name: other}\n", "log: {level: debug}\n", "http: {listen: \"\"}\n", "# a comment\n",
		"scheduler: {observer: {fixed-delay: 30000}, order-observer: {lock: {ttl: 1m}}}\n", "database: {pool-size: 9}\n",
		"database: {url: \"sqlite:x.db\"}\n", "database: {url: \"postgres://other:x@pooler:6432/db?sslmode=disable\"}\n",
	} {
		if got := load(t, same+minimal).Hash(); got != base {
			t.Errorf("the hash changes with %q", same)
		}
	}
	for _, other := range []string{
		"database: {janitor-interval: 9m}\n", "scheduler: {order-observer: {enabled: false}}\n",
		"scheduler: {observer: {enabled: false}}\n", "database: {retention: {polls: 73h}}\n",
	} {
		if got := load(t, other+minimal).Hash(); got == base {
			t.Errorf("the hash does not change with %q", other)
		}
	}
	if got := load(t, strings.Replace(minimal, "updated_at}", "updated_at, overlap: 0}", 1)).Hash(); got == base {
		t.Error("the hash does not change with an overlap that is set")
	}
}

func TestKeysAreUnique(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, key := range config.Keys(wiring.Kinds()) {
		if seen[key.Name] || key.Unit == "" {
			t.Errorf("%+v is there twice, or has no unit", key)
		}
		seen[key.Name] = true
	}
}
