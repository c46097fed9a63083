// Package access stands between a node and its sources: a breaker for each database
// that cannot be reached, a gate for each account that was refused, a limit of polls
// that begin at a time, and the metrics of all that. [Opener] opens a [Source], which is
// used as the database behind it.
package access

import (
	"errors"
	"log/slog"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/observerd/observerd/internal/source"
)

// Target is what the configuration says of a source.
type Target struct {
	// Kind and Database say which database it is, in whatever way it is reached.
	Kind, Database string
	// Account and Secret are what it logs on with; Account is empty for a source
	// without accounts.
	Account, Secret string
	// Open opens it without connecting to it; gate is nil for a source without accounts.
	Open func(gate source.Gate) (source.Database, error)
}

// Options say how the sources of a process are opened. Find and Logger are required.
type Options struct {
	// Node is the name of this node, which others read beside an account that it found
	// to be refused.
	Node string
	// Find returns the source of a name as it is configured now. Its error, as that of
	// [Target.Open], is [ErrMissingFile] when only a file is missing.
	Find func(name string) (Target, error)
	// Accounts remembers refused accounts; nil where there is no such memory yet.
	Accounts Accounts
	// Lenient lets a logon pass where Accounts cannot be asked: a person is there, who
	// may not have made the database yet. A node refuses then: without that database it
	// can commit nothing, so no poll is lost, and it cannot know that it is the only one
	// that tries.
	Lenient bool
	// ReadOnly notes no refusal in Accounts: one that this process meets holds for this
	// process alone.
	ReadOnly bool
	Logger   *slog.Logger
}

// Opener opens the sources of a process. Sources with one account share its gate.
// Make one with [NewOpener]; it is safe for concurrent use.
type Opener struct {
	options Options

	mu    sync.Mutex
	gates map[string]*credentialGate
}

// NewOpener returns an opener that has opened nothing yet.
func NewOpener(o Options) *Opener {
	o.Logger = o.Logger.With("component", "source")
	return &Opener{options: o, gates: make(map[string]*credentialGate)}
}

// Open opens the source of that name without connecting to it. It needs the files
// that the configuration names for it, and its URL.
func (o *Opener) Open(name string) (*Source, error) {
	found, err := o.find(name)
	if err != nil {
		return nil, err
	}
	return &Source{name: name, opened: found}, nil
}

// OpenForPolls is Open for the polls of a scheduler, with so many connections to the
// source. A source that lacks a file fails alone, as one that is down does: its polls
// look for the file.
func (o *Opener) OpenForPolls(name string, connections int, m *Metrics) (*Source, error) {
	found, err := o.find(name)
	switch {
	case errors.Is(err, ErrMissingFile):
		o.options.Logger.Warn("Source cannot be opened until its file exists; its polls try again", "source", name, "err", err)
	case err != nil:
		return nil, err
	}
	m.prepare(name)
	return &Source{
		name: name, opened: found, find: func() (opened, error) { return o.find(name) },
		metrics: m, beginners: &beginners{semaphore.NewWeighted(int64(beginnersPerConnection * connections)), m.waiting.WithLabelValues(name)},
	}, nil
}

func (o *Opener) find(name string) (opened, error) {
	t, err := o.options.Find(name)
	if err != nil {
		return opened{}, err
	}
	found := opened{target: t}
	if t.Account == "" {
		found.Database, err = t.Open(nil)
	} else {
		found.gate = o.gate(t)
		found.Database, err = t.Open(found.gate)
	}
	if err != nil {
		return opened{}, err
	}
	return found, nil
}

// gate returns the gate of the account that a source logs on with.
func (o *Opener) gate(t Target) *credentialGate {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Another secret for the same account is another gate: it was not refused.
	key := t.Account + "\x00" + t.Secret
	if o.gates[key] == nil {
		o.gates[key] = newGate(t.Account, t.Secret, o.options)
	}
	return o.gates[key]
}
