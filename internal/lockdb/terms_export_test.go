package lockdb

import (
	"context"

	"github.com/observerd/observerd/internal/lock"
)

// SlowAnswers calls the function between each acquisition and its answer.
func (db *DB) SlowAnswers(between func()) { db.engine = slowAnswers{db.engine, between} }

type slowAnswers struct {
	engine
	between func()
}

func (e slowAnswers) acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error) {
	fence, before, err = e.engine.acquire(ctx, g, by)
	e.between()
	return fence, before, err
}

// TermsHeld is how many terms the process may hold.
func (db *DB) TermsHeld() (held int) {
	db.terms.Range(func(any, any) bool {
		held++
		return true
	})
	return held
}
