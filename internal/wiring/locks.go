package wiring

import (
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks"
)

// JanitorLock is the name of the lock under which a node cleans.
const JanitorLock = "observerd-janitor"

// SinkLock is the name of the lock of the relay that feeds a sink.
func SinkLock(id string) string { return "sink-" + id }

// LockRequest describes a lock of this node that is no observer type's.
func LockRequest(cfg *config.Config, name string) lock.Request {
	l := cfg.Scheduler.Lock
	return lock.Request{Key: lockdb.Key(lockdb.KeyFormat(l.KeyFormat), name), Region: l.Region, TTL: l.TTL, Name: name, Node: cfg.Node.Name}
}

// TypeLockRequest describes the lock under which a type is polled.
func TypeLockRequest(t config.Type, node string) lock.Request {
	return lock.Request{
		Key: lockdb.Key(lockdb.KeyFormat(t.KeyFormat), t.LockName), Region: t.Region, TTL: t.TTL, Name: t.LockName, Node: node,
		Descriptor: locks.Descriptor{Subject: "observer", Predicate: "polling", Resources: []string{t.Name}}.String(),
	}
}

// TypeOf returns the type of an observer with its effective settings, whether
// it is enabled or not.
func TypeOf(cfg *config.Config, o config.Observer) config.Type {
	o.Enabled = true
	alone := *cfg
	alone.Observers = []config.Observer{o}
	return alone.Types()[0]
}
