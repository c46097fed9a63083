package config

import (
	"strings"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// LoadHTTP loads the section http alone, for a client of a node on this host: it
// finds the node also when other sections are wrong, or name files that the node alone
// may read. Mistakes elsewhere do not count, nor do those of Listen where there is a
// Socket. A file that is
// missing, or is no YAML, is a mistake. The error is nil or an [*Error].
func LoadHTTP(o Options) (HTTP, error) {
	l := newLoader(o)
	cfg := l.layered()
	if cfg == nil {
		return HTTP{}, &Error{Problems: l.Problems}
	}
	httpChecker{l.resolver}.checkHTTP(&cfg.HTTP)
	var mistakes []Problem
	for _, p := range l.Problems {
		if p.Key == "http.socket" || cfg.HTTP.Socket == "" && (p.Key == "http" || strings.HasPrefix(p.Key, "http.")) {
			mistakes = append(mistakes, p)
		}
	}
	if len(mistakes) > 0 {
		yamlfile.Sort(mistakes)
		return HTTP{}, &Error{Problems: mistakes}
	}
	return cfg.HTTP, nil
}
