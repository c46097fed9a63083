package postgres

import (
	"context"

	"github.com/observerd/observerd/internal/observer"
)

// Identity implements [observer.Source]. Where the role may not look at the
// control file, it cannot tell.
func (s *Source) Identity(ctx context.Context) (string, error) {
	l, err := s.look(ctx, observer.Query{})
	return l.identity, err
}
