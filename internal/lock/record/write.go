package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
)

// get reads a record.
func (p *Provider) get(ctx context.Context, region, key string) (Record, error) {
	r, err := p.opts.Records.Get(ctx, region, key)
	if err != nil {
		return Record{}, err
	}
	r.Region, r.Key = region, key
	return p.seen.note(r), nil
}

// put writes a record in place of its version, and returns what is stored. The error is
// [ErrConflict] when the store has another record, which may have replaced this one. After any
// other error this one may be there, or may come.
func (p *Provider) put(ctx context.Context, r Record) (Record, error) {
	r.Mark = uuid.NewString()
	stored, err := p.send(ctx, r)
	for unanswered := 0; err != nil; {
		if errors.Is(err, ErrConflict) && unanswered == 0 {
			return Record{}, err
		}
		at, failed := p.get(ctx, r.Region, r.Key)
		switch unanswered++; {
		case failed != nil:
			return Record{}, fmt.Errorf("%w; what is stored cannot be read: %w", err, failed)
		case at.Mark == r.Mark, r.Term == "" && at.Version == "":
			return at, nil
		case at.Version != r.Version:
			return Record{}, ErrConflict
		case unanswered == tries:
			return Record{}, err
		}
		stored, err = p.send(ctx, r)
	}
	return p.seen.note(stored), nil
}

// send makes the call of a write. A record without a term is deleted where that loses no fence.
func (p *Provider) send(ctx context.Context, r Record) (Record, error) {
	if r.Term == "" && p.opts.Numbered {
		return Record{Region: r.Region, Key: r.Key}, p.opts.Records.Delete(ctx, r)
	}
	stored, err := p.opts.Records.Put(ctx, r)
	if err == nil && (stored.Mark != r.Mark || stored.Version == "") {
		// It may be a proxy with an object of its own.
		err = errors.New("a write was answered without what it has stored; find out what answers in place of the server")
	}
	return stored, err
}

// change writes what next makes of the record of the grant's term, as it was last seen or as it
// is in the store. The error is [lock.ErrLost] when the term does not have it any more.
func (p *Provider) change(ctx context.Context, what string, g lock.Grant, next func(Record) (Record, error)) error {
	err := context.Cause(ctx)
	for try := 0; try < tries && (err == nil || errors.Is(err, ErrConflict)); try++ {
		r := p.seen.last(g.Region, g.Key)
		if r.Term != g.Term || try > 0 {
			if r, err = p.get(ctx, g.Region, g.Key); err != nil {
				break
			}
		}
		if r.Term != g.Term {
			err = lock.ErrLost
			break
		}
		if r, err = next(r); err != nil {
			break
		}
		if _, err = p.put(ctx, r); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s lock %s: %w", what, g.Key, err)
}
