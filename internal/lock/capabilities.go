package lock

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"
	"time"
)

// Capabilities are what a provider has beside exclusive locks that are acquired, renewed and
// released one by one. An interface is nil where the provider lacks it.
type Capabilities struct {
	// Name says what the provider is, in a word, for people and metrics. Required.
	Name string
	// Modes says that it grants locks in all [Modes]; false is [Exclusive] alone.
	Modes bool
	// MinTTL is the shortest TTL that it keeps; what is less counts as that. 0 is any.
	MinTTL time.Duration
	// MostAttempts is how many attempts to acquire it can make at a time. More would wait
	// in it, and their time would be over there. 0 is any number.
	MostAttempts int
	// RenewEvery returns how long after a renewal of a lease with that TTL began the next
	// one is due, at most half of the TTL. A [Keeper] renews no lease sooner without a
	// cause. Nil is a third of the TTL, and renewals that are due at about the same time
	// share a call.
	RenewEvery func(ttl time.Duration) time.Duration
	// Notify calls free when a lock of the region may have become free, until ctx ends or
	// it cannot: the error says why. free does not block. A call that is missed costs a
	// waiter one pause.
	Notify func(ctx context.Context, region string, free func(key string)) error
	// Sweep removes what holders of the region left, released or dead, that was not used
	// since that time. It returns how much it has removed, also beside an error.
	Sweep func(ctx context.Context, region string, before time.Time) (removed int, err error)

	Sets       Sets
	Extender   Extender
	Guard      Guard
	Line       Line
	Finder     Finder
	Stealer    Stealer // which needs the Finder
	Delayer    Delayer
	FailureLog FailureLog
	Queue      Queue
	// Budget says how many locks what keeps them can bear, in words. Empty is any number.
	Budget string
	// Closer ends what the provider has open, after its last call.
	Closer io.Closer
}

// Capability is one of a provider's [Capabilities] for people.
type Capability struct {
	Name string
	// Has is what the provider has of it: yes, no, or a value.
	Has string
}

// List returns all capabilities, also those that the provider lacks, in one order.
func (c Capabilities) List() []Capability {
	list := []Capability{
		{"least TTL", "any"},
		{"attempts at a time", "any number"},
		{"renewal of a lease", "after a third of its TTL"},
		{"shared and intent modes", yes(c.Modes)},
		{"several locks at once", yes(c.Sets != nil)},
		{"change of a TTL", yes(c.Extender != nil)},
		{"guard of a transaction", yes(c.Guard != nil)},
		{"line of those who wait", yes(c.Line != nil)},
		{"list of locks", yes(c.Finder != nil)},
		{"steal", yes(c.Stealer != nil)},
		{"hold at least", yes(c.Delayer != nil)},
		{"count of failures", yes(c.FailureLog != nil)},
		{"notice of a release", yes(c.Notify != nil)},
		{"sweep", yes(c.Sweep != nil)},
		{"queue of tasks", yes(c.Queue != nil)},
		{"budget", cmp.Or(c.Budget, "none")},
	}
	if c.MinTTL > 0 {
		list[0].Has = c.MinTTL.String()
	}
	if c.MostAttempts > 0 {
		list[1].Has = strconv.Itoa(c.MostAttempts)
	}
	if c.RenewEvery != nil {
		ttl := max(time.Minute, c.MinTTL)
		list[2].Has = "after " + c.RenewEvery(ttl).String() + " of " + ttl.String()
	}
	return list
}

// String is the list without what the provider has like any other, and behind a semicolon
// what it lacks.
func (c Capabilities) String() string {
	var values, lacks []string
	for _, capability := range c.List() {
		switch capability.Has {
		case yes(true):
		case yes(false):
			lacks = append(lacks, capability.Name)
		default:
			values = append(values, capability.Name+" "+capability.Has)
		}
	}
	return c.Name + ": " + strings.Join(values, ", ") + "; lacks " + cmp.Or(strings.Join(lacks, ", "), "nothing")
}

func yes(has bool) string {
	if has {
		return "yes"
	}
	return "no"
}
