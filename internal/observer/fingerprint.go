package observer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// fingerprint identifies what a cursor and the remembered keys belong to. The
// columns are not part of it: another choice of columns makes new versions of
// the same rows, and that is what it looks like to a consumer.
func fingerprint(s Spec) string {
	q := s.Query
	sum := sha256.Sum256([]byte(encode([]any{q.Table, q.SQL, q.Key, q.Timestamp, s.Detect})))
	return hex.EncodeToString(sum[:16])
}

func (j *journal) checkFingerprint() error {
	if j.cursor.Fingerprint == "" || j.cursor.Fingerprint == j.fingerprint {
		return nil
	}
	return fmt.Errorf("%w: if it is meant to start anew, run `observerd observers reset %s`, "+
		"and with --keep-cursor if it is meant to go on from where it was", ErrQueryChanged, j.spec.Stream)
}
