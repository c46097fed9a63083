package lockdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/observerd/observerd/internal/observer"
)

// deadDigest recognises a poison row that is met again in the next poll, so
// that it is kept once.
func deadDigest(d observer.Dead) []byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(d.Key), []byte(d.Reason), d.Raw} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:16]
}

// deadFresh is for how long, in seconds, a poison row need not be noted again.
// The janitor forgets what was not noted for much longer.
const deadFresh = 24 * 60 * 60

// Buried implements [observer.Store].
func (s *Store) Buried(ctx context.Context, c observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	keys := make([]string, len(dead))
	for i, d := range dead {
		keys[i] = hex.EncodeToString(deadDigest(d))
	}
	list, err := s.db.List(keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string]observer.Burial, len(dead))
	err = s.db.Query(ctx, "look up poison rows of "+c.Stream, s.engine.buriedSQL(), func(scan func(...any) error) error {
		var digest []byte
		var refused, fresh bool
		err := scan(&digest, &refused, &fresh)
		switch {
		case refused:
			found[hex.EncodeToString(digest)] = observer.BuriedRefused
		case !fresh:
			found[hex.EncodeToString(digest)] = observer.BuriedLong
		default:
			found[hex.EncodeToString(digest)] = observer.Buried
		}
		return err
	}, c.Stream, list, deadFresh)
	if err != nil {
		return nil, err
	}
	known := make([]observer.Burial, len(dead))
	for i, key := range keys {
		known[i] = found[key]
	}
	return known, nil
}
