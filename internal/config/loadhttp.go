package config

import (
	"strings"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// LoadHTTP loads the section http alone, for whoever asks a node on this host: it
// finds the node whatever is wrong with the rest of its configuration, and without
// the files that the node alone may read. What is wrong elsewhere does not count,
// nor does what is wrong with Listen where there is a Socket. A file that is
// missing, or is no YAML, is a mistake. The error is nil or an [*Error].
func LoadHTTP(o Options) (HTTP, error) {
	l := newLoader(o)
	cfg := l.layered()
	if cfg == nil {
		return HTTP{}, &Error{Problems: l.Problems}
	}
	l.checkHTTP(&cfg.HTTP)
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
