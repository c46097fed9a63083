package observer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// fingerprint identifies what a cursor and the remembered keys belong to. The
// columns are not part of it: another choice of columns makes new versions of
// the same rows, and that is what it looks like to a consumer.
func fingerprint(s Spec) string {
	q := s.Query
	sum := sha256.Sum256([]byte(encode([]any{q.Table, q.SQL, q.Key, q.Timestamp, s.Detect})))
	return hex.EncodeToString(sum[:16])
}

// normalKeys marks the fingerprint of a stream whose keys a version that does not know
// their normal form would rename: to that one it is the fingerprint of another query.
const normalKeys = "-normal-keys"

// Marked returns a fingerprint of the query, marked or not, as that of a stream whose
// keys have this form.
func (f KeyForm) Marked(fingerprint string) string {
	fingerprint = strings.TrimSuffix(fingerprint, normalKeys)
	if f.Matters() {
		fingerprint += normalKeys
	}
	return fingerprint
}

// isFingerprint reports whether it is that of the cursor.
func (j *journal) isFingerprint(of string) bool {
	return strings.TrimSuffix(j.cursor.Fingerprint, normalKeys) == of
}

func (j *journal) checkFingerprint() error {
	if j.cursor.Fingerprint == "" || j.isFingerprint(j.fingerprint) {
		return nil
	}
	return fmt.Errorf("%w: if it is meant to start anew, run `observerd observers reset %s`, "+
		"and with --keep-cursor if it is meant to go on from where it was", ErrQueryChanged, j.spec.Stream)
}
