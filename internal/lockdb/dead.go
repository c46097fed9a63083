package lockdb

import (
	"crypto/sha256"

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
