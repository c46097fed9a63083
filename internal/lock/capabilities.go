package lock

import (
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
	// RenewEvery is how long after a renewal of a lease began the next one is due. A
	// [Keeper] renews no lease sooner without a cause, and none later than at half of its
	// TTL; so MinTTL is at least twice as long. 0 is a third of the TTL, and renewals that
	// are due at about the same time share a call.
	RenewEvery time.Duration

	Sets       Sets
	Extender   Extender
	Guard      Guard
	Line       Line
	Finder     Finder
	Stealer    Stealer // which needs the Finder
	Delayer    Delayer
	FailureLog FailureLog
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
	}
	if c.MinTTL > 0 {
		list[0].Has = c.MinTTL.String()
	}
	if c.MostAttempts > 0 {
		list[1].Has = strconv.Itoa(c.MostAttempts)
	}
	if c.RenewEvery > 0 {
		list[2].Has = "every " + c.RenewEvery.String()
	}
	return list
}

// String is the list in a line.
func (c Capabilities) String() string {
	words := make([]string, 0, 16)
	for _, capability := range c.List() {
		words = append(words, capability.Name+" "+capability.Has)
	}
	return c.Name + ": " + strings.Join(words, ", ")
}

func yes(has bool) string {
	if has {
		return "yes"
	}
	return "no"
}
