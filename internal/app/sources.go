package app

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wiring"
)

// opener opens the sources of a process. Sources with one account share its
// gate.
type opener struct {
	cfg *config.Config
	// store remembers refused accounts; nil where there is none. lenient is for
	// the one-shot commands, see [gate].
	store   accounts
	lenient bool
	log     *slog.Logger

	mu    sync.Mutex
	gates map[string]*gate
}

func newOpener(cfg *config.Config, store accounts, lenient bool, log *slog.Logger) *opener {
	return &opener{cfg: cfg, store: store, lenient: lenient, log: log.With("component", "source"), gates: make(map[string]*gate)}
}

// gate returns the gate of the account that a URL logs on with; nil for one without
// accounts.
func (o *opener) gate(url config.URL) *gate {
	id, secret := url.Account()
	if id == "" {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Another secret for the same account is another gate: it was not refused.
	key := id + "\x00" + secret.Reveal()
	if o.gates[key] == nil {
		o.gates[key] = newGate(id, secret.Reveal(), o.cfg.Node.Name, o.store, o.lenient, o.log)
	}
	return o.gates[key]
}

// open opens the source of that name without connecting to it. It needs the files
// that the configuration names for it, and its URL.
func (o *opener) open(name string) (*guarded, error) {
	src, err := o.try(name)
	if err != nil {
		return nil, mistake{err} // One in its URL, that only the source can see.
	}
	return &guarded{Database: src.Database, name: name, url: src.url, gate: src.gate}, nil
}

// opened is a source that could be opened.
type opened struct {
	source.Database
	url  config.URL
	gate *gate // nil for a source without accounts
}

func (o *opener) try(name string) (opened, error) {
	c, err := o.cfg.Sources[name].Resolve()
	if err != nil {
		return opened{}, err
	}
	g := o.gate(c.URL)
	src, err := o.openKind(name, c, g)
	return opened{src, c.URL, g}, err
}

func (o *opener) openKind(name string, c config.Source, g *gate) (source.Database, error) {
	var logons source.Gate
	if g != nil {
		logons = g
	}
	return wiring.OpenSource(string(c.URL.Dialect()), source.Options{
		URL: c.URL.Reveal(), Name: name, Node: o.cfg.Node.Name, Location: c.Location(), PoolSize: c.PoolSize, FetchSize: c.FetchSize,
		QueryTimeout: c.QueryTimeout, Gate: logons,
	})
}

// later returns the source of that name, which its first use opens.
func (o *opener) later(name string) *guarded {
	return &guarded{Database: &pending{open: func() (opened, error) { return o.try(name) }}, name: name}
}

// openSources opens the sources that some enabled observer reads, each behind
// the circuit of its database. One that lacks a file fails alone, as one that
// is down does.
func openSources(o *opener, m *sourceMetrics, c *cleanups) (map[string]*guarded, error) {
	opened := map[string]*guarded{}
	for _, observed := range o.cfg.Observers {
		name := observed.Source
		if !observed.Enabled || opened[name] != nil {
			continue
		}
		src, err := o.open(name)
		if lacksFile(err) {
			o.log.Warn("Source cannot be read until there is a file; its polls look for it", "source", name, "err", err)
			src, err = o.later(name), nil
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		c.close("source "+name, src)
		m.prepare(name)
		src.metrics, src.beginners = m, newBeginners(o.cfg.Sources[name].PoolSize, m.waiting.WithLabelValues(name))
		opened[name] = src
	}
	return opened, nil
}
