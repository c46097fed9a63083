package simtest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// shown is how much of a journal a failure shows.
const shown = 200

// Journal is what happened in a history, for the reader of its failure. It is
// safe for concurrent use.
type Journal struct {
	began time.Time

	mu      sync.Mutex
	entries []entry
	closed  bool
}

type entry struct {
	at        time.Duration
	who, what string
	fault     Fault
	err       error
}

// NewJournal returns an empty journal that begins now.
func NewJournal() *Journal { return &Journal{began: time.Now()} }

// Close adds how the story ends; what happens afterwards is not of interest.
func (j *Journal) Close(what string) {
	j.Note("RULE", what)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// Note adds what happened to somebody.
func (j *Journal) Note(who, what string) { j.note(who, what, Fault{}, nil) }

func (j *Journal) note(who, what string, f Fault, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.entries = append(j.entries, entry{time.Since(j.began), who, what, f, err})
}

// String is the end of the journal.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	from := max(0, len(j.entries)-shown)
	if from > 0 {
		fmt.Fprintf(&b, "(%d earlier lines)\n", from)
	}
	for _, e := range j.entries[from:] {
		fmt.Fprintf(&b, "%14s  %-8s %s", e.at, e.who, e.what)
		if e.fault.Kind != "" {
			fmt.Fprintf(&b, ", %s", e.fault)
		}
		if e.err != nil {
			fmt.Fprintf(&b, ": %v", e.err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
