package check

import (
	"fmt"
	"io"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/observerd/observerd/test/torture/history"
)

// Linearity is what [Linear] found.
type Linearity struct {
	// Operations and Locks are how much was judged.
	Operations, Locks int
	// Violations are the locks whose history no order of its operations
	// explains.
	Violations []Violation
	// Unknown are the locks whose judgement took too long.
	Unknown []string

	shown []porcupine.Operation // a part that a picture is worth
}

// OK tells that all was judged and nothing was wrong.
func (l Linearity) OK() bool { return len(l.Violations) == 0 && len(l.Unknown) == 0 }

// Linear judges the history of each lock as that of a register that is
// acquired with a growing token, renewed, released, and guards writes: each
// operation must have happened at one instant between its two records. Unlike
// the other rules it knows nothing of why. A timeout, for all locks together,
// leaves the rest unknown; 0 means a minute.
func Linear(run history.Run, timeout time.Duration) Linearity {
	c := &checker{run: &run, demands: DemandsOf(run.Meta).withDefaults(run.Meta)}
	c.index()
	end := time.Now().Add(orDefault(timeout, time.Minute))
	var l Linearity
	for _, lock := range c.locks {
		all := lock.operations(c.streams, make(map[string]int))
		l.Operations += len(all)
		l.Locks++
		for _, part := range pieces(all) {
			if !l.judge(lock.key, part, end) {
				break
			}
		}
	}
	return l
}

// judge judges a part of one lock's history; false when the rest is not worth
// judging.
func (l *Linearity) judge(key string, part []porcupine.Operation, end time.Time) bool {
	result := porcupine.Unknown
	if left := time.Until(end); left > 0 {
		result = porcupine.CheckOperationsTimeout(lockModel(), part, left)
	}
	switch result {
	case porcupine.Unknown:
		l.Unknown = append(l.Unknown, key)
	case porcupine.Illegal:
		if len(l.Violations) == 0 {
			l.shown = part
		}
		l.Violations = append(l.Violations, Violation{
			Kind: NotLinear, Subject: key,
			What: fmt.Sprintf("no order explains these %d operations: one of them was done under a term that another had replaced, or with an old token", len(part)),
			From: time.Unix(0, part[0].Call), To: time.Unix(0, part[len(part)-1].Call),
		})
	default:
		if len(l.Violations) == 0 && len(part) > len(l.shown) {
			l.shown = part
		}
		return true
	}
	return false
}

// pictureTime bounds the search for what a picture shows.
const pictureTime = 10 * time.Second

// Visualize writes a page in HTML that shows the first history that was wrong,
// or else the longest, with the order that was found.
func (l Linearity) Visualize(to io.Writer) error {
	model := lockModel()
	_, info := porcupine.CheckOperationsVerbose(model, l.shown, pictureTime)
	if err := porcupine.Visualize(model, info, to); err != nil {
		return fmt.Errorf("draw the history of a lock: %w", err)
	}
	return nil
}

// With adds what [Linear] found to the report. What took too long makes the run
// void.
func (r Report) With(l Linearity) Report {
	found := make(map[Kind]int, len(r.Found)+1)
	for kind, n := range r.Found {
		found[kind] = n
	}
	if n := len(l.Violations); n > 0 {
		found[NotLinear] = n
	}
	r.Found = found
	r.Violations = append(r.Violations[:len(r.Violations):len(r.Violations)], l.Violations...)
	for _, key := range l.Unknown {
		r.Void = append(r.Void[:len(r.Void):len(r.Void)], fmt.Sprintf("the history of the lock %s could not be judged in time", key))
	}
	return r
}
