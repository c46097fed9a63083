package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/fn"
)

// check checks keys that depend on others, and fills in defaults that do.
func (l *loader) check(cfg *Config) {
	l.checkNode(cfg)
	checkLabel(l.Report, "cluster.name", cfg.Cluster.Name)
	if u, at, ok := l.resolveURL("database", l.options.Kinds.Servers.ParseCoordination); ok {
		cfg.Database.URL = u
		l.checkFileSystem(at, u)
	}
	schedulerChecker{l.Report}.checkScheduler(cfg)
	l.checkLocks(cfg)
	l.checkSources(cfg.Sources)
	observerChecker{l.resolver}.checkObservers(cfg)
	l.checkSinks(cfg.Sinks, cfg.Observers)
	httpChecker{l.resolver}.checkHTTP(&cfg.HTTP)
}

func (l *loader) checkNode(cfg *Config) {
	if cfg.Node.Name == "" {
		name, err := os.Hostname()
		if err != nil || name == "" || !utf8.ValidString(name) {
			l.Reject("node.name", "the host has no readable name; use a name here")
		}
		cfg.Node.Name = name
	}
	checkLabel(l.Report, "node.name", cfg.Node.Name)
}

// LockRegions returns the regions of the pollers' locks, sorted.
func (s Scheduler) LockRegions() []string {
	regions := []string{s.Lock.Region}
	for _, t := range s.Types {
		regions = append(regions, t.Lock.Region)
	}
	return fn.Distinct(regions)
}

// checkLabel accepts a short text that can stand in one line of a log.
func checkLabel(r *yamlfile.Report, key, text string) {
	switch {
	case utf8.RuneCountInString(text) > 100:
		r.Reject(key, yamlfile.LastKey(key)+" is longer than 100 characters; use a shorter one")
	case strings.TrimSpace(text) != text || strings.ContainsFunc(text, unicode.IsControl):
		r.Reject(key, yamlfile.LastKey(key)+" has blanks around it or control characters in it; remove them")
	}
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// badName says why a name cannot be used; empty means that it can.
func badName(text string) string {
	if namePattern.MatchString(text) {
		return ""
	}
	return "this is not a name; use a to z, 0 to 9 and -, at most 64 of them, a letter or digit first"
}

// checkName checks the names that ids, types and sources have.
func checkName(r *yamlfile.Report, key, text string) {
	if why := badName(text); why != "" && r.OK(key) {
		r.Reject(key, why)
	}
}

// checkUnique rejects the second of two entries with the same value.
func checkUnique(r *yamlfile.Report, seen map[string]string, value, key, what string) {
	if first, ok := seen[value]; ok {
		r.Reject(key, fmt.Sprintf("%s is there already, at %s; use another", what, r.Where(first)))
		return
	}
	seen[value] = key
}
