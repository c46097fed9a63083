package wiring

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
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
	return lockRequest(cfg.Scheduler.Lock, name, cfg.Node.Name)
}

func lockRequest(l config.Lock, name, node string) lock.Request {
	return lock.Request{Key: lockdb.Key(lockdb.KeyFormat(l.KeyFormat), name), Region: l.Region, TTL: l.TTL, Name: name, Node: node}
}

// TypeLockRequest describes the lock under which a type is polled.
func TypeLockRequest(t config.Type, node string) lock.Request {
	r := lockRequest(t.Lock, t.LockName, node)
	r.Descriptor = locks.Descriptor{Subject: "observer", Predicate: "polling", Resources: []string{t.Name}}.String()
	return r
}

// TypeOf returns the type of an observer with its effective settings, whether
// it is enabled or not.
func TypeOf(cfg *config.Config, o config.Observer) config.Type {
	o.Enabled = true
	alone := *cfg
	alone.Observers = []config.Observer{o}
	return alone.Types()[0]
}

// LockOptions returns what the configuration says of the locks that serve other programs.
// Provider, node and logger are the caller's.
func LockOptions(c config.Locks) locks.Options {
	o := locks.Options{Region: c.Region, Subjects: c.Subjects, Predicates: c.Predicates}
	o.Hierarchies = fn.Each(c.Hierarchies, func(text string) []string { return fn.Each(strings.Split(text, ">"), strings.TrimSpace) })
	for _, p := range c.Policies {
		policy := locks.Policy{
			Name: p.ID, Subject: p.Subject, Predicate: p.Predicate, Mode: locks.Mode(p.Mode),
			MinTTL: p.MinTTL, MaxTTL: p.MaxTTL, ExplicitTTL: p.ExplicitTTL, MaxHold: p.MaxHold,
			Metadata: p.Metadata, PerNode: p.PerNode, StealBy: p.StealBy, Reason: p.Reason,
		}
		for _, mode := range p.Modes {
			policy.Modes = append(policy.Modes, locks.Mode(mode))
		}
		o.Policies = append(o.Policies, policy)
	}
	return o
}

// lockMistakes returns all that is wrong with policies and hierarchies. What is wrong is
// left out to find the next.
func lockMistakes(c config.Locks) (mistakes []config.LocksMistake) {
	o := LockOptions(c)
	policies, hierarchies := fn.Indexes(len(o.Policies)), fn.Indexes(len(o.Hierarchies))
	for {
		_, err := locks.NewRules(o)
		wrong, ok := errors.AsType[*locks.OptionError](err)
		if !ok {
			return mistakes
		}
		i := wrong.Index
		if wrong.Option == "Hierarchies" {
			mistakes = append(mistakes, config.LocksMistake{Key: fmt.Sprintf("hierarchies[%d]", hierarchies[i]), Text: wrong.Err.Error()})
			o.Hierarchies, hierarchies = slices.Delete(o.Hierarchies, i, i+1), slices.Delete(hierarchies, i, i+1)
			continue
		}
		key := fmt.Sprintf("policies[%d]", policies[i])
		if field, ok := errors.AsType[*locks.DescriptorError](wrong.Err); ok {
			key += "." + field.Field
		}
		mistakes = append(mistakes, config.LocksMistake{Key: key, Text: wrong.Err.Error()})
		o.Policies, policies = slices.Delete(o.Policies, i, i+1), slices.Delete(policies, i, i+1)
	}
}
