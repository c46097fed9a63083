package observer

import (
	"context"
	"errors"
	"fmt"
)

// RefusalKind is the kind of rows or columns that a poll refuses.
type RefusalKind string

// The kinds of refusals.
const (
	// RefusalGone are more rows missing from a snapshot than may go at once.
	RefusalGone RefusalKind = "gone"
	// RefusalPoison are more rows that cannot be read than single bad rows are.
	RefusalPoison RefusalKind = "poison"
	// RefusalColumns are columns that the source has taken away or retyped.
	RefusalColumns RefusalKind = "columns"
)

// Refusal is what a poll or a sweep did not believe, for a person to judge. After that
// person accepts it, the next one goes that far, once. The zero value is none.
type Refusal struct {
	Kind RefusalKind `json:"kind"`
	// Sweep is the kind of the sweep that refused; empty for a poll.
	Sweep SweepKind `json:"sweep,omitempty"`
	// Rows is how many rows are gone, or poison.
	Rows int64 `json:"rows,omitempty"`
	// Columns are those that were found, as [EncodeColumns] writes them.
	Columns string `json:"columns,omitempty"`
	// Text says it to a person. It holds no value of a row.
	Text string `json:"text"`
}

// Encode writes a refusal as the cursor remembers it; empty for none.
func (r Refusal) Encode() string {
	if r == (Refusal{}) {
		return ""
	}
	return encode(r)
}

// DecodeRefusal reads what [Refusal.Encode] wrote. The error is for a text that
// a later version wrote.
func DecodeRefusal(text string) (Refusal, error) { return decode[Refusal](text, "refusal") }

// refusedError is the error of a refusal, with the poison rows to keep.
type refusedError struct {
	Refusal
	dead []Dead
	err  error
}

func (r *refusedError) Error() string { return r.err.Error() }
func (r *refusedError) Unwrap() error { return r.err }

// refuse makes the error of a refusal; advice follows its text.
func (j *journal) refuse(err error, r Refusal, advice string) *refusedError {
	r.Sweep = j.sweep.kind()
	return &refusedError{Refusal: r, err: fmt.Errorf("%w: %s; %s, run `observerd observers accept %s`", err, r.Text, advice, j.spec.Stream)}
}

// deadKept is how many poison rows are kept of one refusal.
const deadKept = 1000

// noteRefusal commits what this poll or sweep refused, so that a person can look at it
// and accept it. Marks stay where the last row that was compared left them. Columns are
// for the polls to refuse, which read them too.
func (p *poll) noteRefusal(ctx context.Context, err error) error {
	var r *refusedError
	if !errors.As(err, &r) || ctx.Err() != nil || r.Sweep != "" && r.Kind == RefusalColumns {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.spec.CommitTimeout)
	defer cancel()
	dead, failed := p.unburied(ctx, r.dead[:min(len(r.dead), deadKept)])
	if failed != nil {
		return errors.Join(err, failed)
	}
	text := r.Encode()
	// Another reading of all rows looks for the missing ones.
	again := r.Kind == RefusalGone && p.generation.stored
	if text == p.cursor.Refusal && p.accepted == (Refusal{}) && len(dead) == 0 && !again {
		return err
	}
	p.next.Refusal, p.accepted = text, Refusal{}
	ch := Chunk{Dead: dead, Refused: true}
	if again {
		ch.Generation = p.generation.ended()
	}
	if failed := p.commit(ctx, ch); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// allowed is how many rows a person has accepted of a kind.
func (j *journal) allowed(kind RefusalKind) int64 {
	if !j.isAccepted(kind) {
		return 0
	}
	return j.accepted.Rows
}

func (j *journal) isAccepted(kind RefusalKind) bool {
	return j.accepted.Kind == kind && j.accepted.Sweep == j.sweep.kind()
}

// use takes rows off what was accepted. The chunk that is made next says so.
func (j *journal) use(kind RefusalKind, rows int) {
	if j.isAccepted(kind) {
		j.accepted.Rows = max(0, j.accepted.Rows-int64(rows))
	}
}

// settleRefusal forgets what was refused, and accepted, once a poll or a sweep
// of that kind has come to its end without a refusal.
func (j *journal) settleRefusal(done bool) error {
	refusal, err := DecodeRefusal(j.next.Refusal)
	if err != nil {
		return err
	}
	if done && refusal.Sweep == j.sweep.kind() {
		j.next.Refusal, j.accepted = "", Refusal{}
	}
	return nil
}
