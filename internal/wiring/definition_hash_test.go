package wiring

import (
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
)

// TestHashOfADefinition changes one thing after the other: the part of the source
// changes with the source alone, and neither with what no event depends on.
func TestHashOfADefinition(t *testing.T) {
	t.Parallel()
	hash := func(change func(cfg *config.Config, o *config.Observer)) (source, rest string) {
		cfg := &config.Config{Sources: map[string]config.Source{"erp": {}, "other": {}}}
		for name, s := range cfg.Sources {
			s.URL = parsedURL(t, "mysql://reader@db1/shop")
			cfg.Sources[name] = s
		}
		o := config.Observer{Source: "erp", Table: "orders", Key: []string{"id"}, Columns: []string{"status"}, Event: "E", Detect: "new"}
		change(cfg, &o)
		url := cfg.Sources[o.Source].URL
		source, rest, _ = strings.Cut(hashOf(string(url.Dialect()), url.Database(), o), "/")
		return source, rest
	}
	at := func(url string) func(*config.Config, *config.Observer) {
		return func(cfg *config.Config, _ *config.Observer) {
			s := cfg.Sources["erp"]
			s.URL = parsedURL(t, url)
			cfg.Sources["erp"] = s
		}
	}
	source, rest := hash(func(*config.Config, *config.Observer) {})
	for name, tc := range map[string]struct {
		change         func(*config.Config, *config.Observer)
		source, others bool
	}{
		"another source":   {func(_ *config.Config, o *config.Observer) { o.Source = "other" }, true, false},
		"another database": {at("mysql://reader@db1/archive"), true, false},
		"another kind":     {at("mariadb://reader@db1/shop"), true, false},
		"another host":     {at("mysql://reader@db2/shop"), false, false},
		"other columns":    {func(_ *config.Config, o *config.Observer) { o.Columns = nil }, false, true},
		"another table":    {func(_ *config.Config, o *config.Observer) { o.Table = "lines" }, false, true},
		"another chunk":    {func(_ *config.Config, o *config.Observer) { o.ChunkSize = 7 }, false, false},
		"a redaction":      {func(_ *config.Config, o *config.Observer) { o.Redact = config.Redactions{"status": "mask"} }, false, true},
		"another time": {func(_ *config.Config, o *config.Observer) {
			o.FixedDelay, o.NotBetween = time.Minute, "22:00-06:00 UTC"
		}, false, false},
	} {
		s, r := hash(tc.change)
		if (s != source) != tc.source || (r != rest) != tc.others {
			t.Errorf("%s: the source's part changes: %t, the rest: %t", name, s != source, r != rest)
		}
	}
}

func parsedURL(t *testing.T, text string) config.URL {
	t.Helper()
	u, err := Kinds().Servers.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
