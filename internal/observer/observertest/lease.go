package observertest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

// lease is a store under one lease.
type lease struct {
	db    *DB
	fence int
}

func (l *lease) Cursor(ctx context.Context, name string) (observer.Cursor, error) {
	if err := l.db.begin(ctx, "cursor"); err != nil {
		return observer.Cursor{}, err
	}
	return l.db.Cursor(name), nil
}

func (l *lease) Observed(ctx context.Context, c observer.Cursor, keys []string) ([]observer.Observed, error) {
	if err := l.db.begin(ctx, "observed"); err != nil {
		return nil, err
	}
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	known := make([]observer.Observed, len(keys))
	for i, key := range keys {
		known[i] = l.db.stream(c.Stream).observed[key]
	}
	return known, nil
}

func (l *lease) Buried(ctx context.Context, c observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	if err := l.db.begin(ctx, "buried"); err != nil {
		return nil, err
	}
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	s := l.db.stream(c.Stream)
	known := make([]observer.Burial, len(dead))
	for i, d := range dead {
		if n := s.find(d); n >= 0 {
			known[i] = observer.Buried
			if s.refused[n] {
				known[i] = observer.BuriedRefused
			}
		}
	}
	return known, nil
}

func (l *lease) Live(ctx context.Context, c observer.Cursor, after string, visit func(observer.Observed) error) error {
	if err := l.db.begin(ctx, "live"); err != nil {
		return err
	}
	live := read(l.db, c.Stream, func(s *stream) (rows []observer.Observed) {
		for _, o := range s.observed {
			if !o.Gone && o.Key > after {
				rows = append(rows, o)
			}
		}
		return rows
	})
	slices.SortFunc(live, func(a, b observer.Observed) int { return strings.Compare(a.Key, b.Key) })
	for _, o := range live {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// Generation implements observer.Store.
func (l *lease) Generation(ctx context.Context, c observer.Cursor) (observer.Generation, error) {
	if err := l.db.begin(ctx, "generation"); err != nil {
		return observer.Generation{}, err
	}
	return l.db.Generation(c.Stream), nil
}

// Commit compares the fence, then the version, as one statement of the real
// database does.
func (l *lease) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	if err := l.db.begin(ctx, "commit"); err != nil {
		return observer.Cursor{}, err
	}
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	if l.fence != l.db.fence {
		return observer.Cursor{}, cmp.Or(l.db.Fenced, ErrFenced)
	}
	s := l.db.stream(ch.Before.Stream)
	if ch.Before.Version != s.cursor.Version {
		return observer.Cursor{}, ErrStale
	}
	sweep, err := l.db.sweepOf(ch)
	if err != nil {
		return observer.Cursor{}, err
	}
	if err := s.check(ch); err != nil {
		return observer.Cursor{}, err
	}
	if sweep != nil {
		advance(sweep, *ch.Sweep)
	}
	return l.db.commit(s, ch), nil
}
