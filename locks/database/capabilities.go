package database

import (
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks"
)

// Capabilities implements [locks.Provider].
func (p *Provider) Capabilities() locks.Capabilities {
	c := p.capabilities(p.db.Backend())
	c.Closer = p.node
	return c
}

// Kinds returns what the locks of each kind of database have, for people: none is opened.
func Kinds() []locks.Capabilities {
	var none *Provider
	return []locks.Capabilities{none.capabilities("postgres"), none.capabilities("sqlite")}
}

func (p *Provider) capabilities(backend string) locks.Capabilities {
	c := lockdb.Capabilities(backend)
	c.Modes = true
	c.Sets, c.Extender, c.Guard, c.Line = p, p, p, p
	c.Finder, c.Stealer, c.Delayer, c.FailureLog = p, p, p, p
	return c
}
