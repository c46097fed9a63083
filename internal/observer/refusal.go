package observer

import (
	"context"
	"errors"
	"fmt"
)

// refusedError is the error of a refusal, with the poison rows to keep, and the reading of
// all rows that ends with it.
type refusedError struct {
	Refusal
	dead  []Dead
	ended *Generation
	err   error
}

func (r *refusedError) Error() string { return r.err.Error() }
func (r *refusedError) Unwrap() error { return r.err }

// refuse makes the error of a refusal; advice follows its text.
func (j *journal) refuse(err error, r Refusal, advice string) *refusedError {
	r.Sweep = j.sweep.kind()
	return &refusedError{Refusal: r, err: fmt.Errorf("%w: %s; %s, run `observerd observers accept %s`", err, r.Text, advice, j.spec.Stream)}
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

// deadKept is how many poison rows are kept of one refusal.
const deadKept = 1000

// noteRefusal commits what this poll or sweep refused, so that a person can look at it
// and accept it. Marks stay where the last row that was compared left them. Columns are
// for the polls to refuse, which read them too.
func (j *journal) noteRefusal(ctx context.Context, err error) error {
	var r *refusedError
	if !errors.As(err, &r) || ctx.Err() != nil || r.Sweep != "" && r.Kind == RefusalColumns {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.spec.CommitTimeout)
	defer cancel()
	dead, failed := j.unburied(ctx, r.dead[:min(len(r.dead), deadKept)])
	if failed != nil {
		return errors.Join(err, failed)
	}
	text := r.Encode()
	if text == j.cursor.Refusal && j.accepted == (Refusal{}) && len(dead) == 0 && r.ended == nil {
		return err
	}
	j.next.Refusal, j.accepted = text, Refusal{}
	if failed := j.commit(ctx, Chunk{Generation: r.ended, Dead: dead, Refused: true}); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// unburied are the poison rows that are not known.
func (j *journal) unburied(ctx context.Context, dead []Dead) ([]Dead, error) {
	if len(dead) == 0 {
		return nil, nil
	}
	known, err := j.st.Buried(ctx, j.cursor, dead)
	if err != nil {
		return nil, failed(ctx, "look up poison rows", err)
	}
	var left []Dead
	for i, d := range dead {
		if known[i] == NotBuried {
			left = append(left, d)
		}
	}
	return left, nil
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
