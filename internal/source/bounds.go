package source

import (
	"fmt"

	"github.com/observerd/observerd/internal/observer"
)

// Bounds returns the bounds of a statement in the form in which a database takes
// them; parts says what they are, see [Writer]. cursor writes a bound of
// the timestamp, key a part of the key. Each reports false for what cannot have come
// from the column.
func Bounds[T any](s Selection, in observer.Range, parts []int, cursor func(bound string) (T, bool), key func(c Column, part string) (T, bool)) ([]T, error) {
	texts, err := s.SplitKey(in.Key)
	if err != nil {
		return nil, err
	}
	bounds := make([]T, len(parts))
	for n, part := range parts {
		what, name := "cursor", s.TimestampName()
		var ok bool
		switch part {
		case BoundFrom:
			bounds[n], ok = cursor(in.From)
		case BoundBefore:
			bounds[n], ok = cursor(in.Before)
		default:
			c := s.Columns[s.Key[part]]
			what, name = "key to go on from", c.Name
			bounds[n], ok = key(c, texts[part])
		}
		if !ok {
			return nil, fmt.Errorf("the %s does not fit column %s: has its type changed?", what, name)
		}
	}
	return bounds, nil
}
