package observer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/events"
)

// Redaction is what becomes of the values of a column before they leave a source. The
// zero value leaves them as they are.
type Redaction string

// The redactions.
const (
	// RedactDrop leaves the column out; it is not read.
	RedactDrop Redaction = "drop"
	// RedactHash writes [events.HashPrefix] and the HMAC-SHA-256 of the value's text, in
	// hexadecimal digits. NULL stays. The text is that of a key in the normal form, so that
	// equal values have equal hashes in all tables.
	RedactHash Redaction = "hash"
	// RedactMask writes [events.Mask] in place of every value, NULL too: it tells nothing.
	RedactMask Redaction = "mask"
)

// HashKey is the key of [RedactHash]. It does not print: a query holds a pointer to it.
type HashKey struct{ secret []byte }

// NewHashKey returns the key of that secret.
func NewHashKey(secret string) *HashKey { return &HashKey{[]byte(secret)} }

// Fingerprint identifies the key, and does not tell it; empty for nil.
func (k *HashKey) Fingerprint() string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.Hasher().sum([]byte("observerd: fingerprint of the key"))[:8])
}

// Hasher returns what hashes values by the key.
func (k *HashKey) Hasher() *Hasher { return &Hasher{mac: hmac.New(sha256.New, k.secret)} }

// Hasher hashes values. It is not safe for concurrent use.
type Hasher struct {
	mac hash.Hash
	out [sha256.Size]byte
}

func (h *Hasher) sum(text []byte) []byte {
	h.mac.Reset()
	h.mac.Write(text) // It never fails.
	return h.mac.Sum(h.out[:0])
}

// Append appends the hash of a text.
func (h *Hasher) Append(dst, text []byte) []byte {
	return hex.AppendEncode(append(dst, events.HashPrefix...), h.sum(text))
}

// Redaction is that of a column, by its name in any case.
func (q Query) Redaction(column string) Redaction {
	for name, r := range q.Redact {
		if strings.EqualFold(name, column) {
			return r
		}
	}
	return ""
}

const (
	hashOf = "hash of "
	maskOf = "mask"
)

// Redacted is the column as streams remember it. The type of a hashed one is kept,
// because another may write the same value in another way.
func (c Column) Redacted(r Redaction) Column {
	switch r {
	case RedactHash:
		c.Type = hashOf + c.Type
	case RedactMask:
		c.Type = maskOf
	case RedactDrop:
	}
	return c
}

// redaction undoes Redacted.
func (c Column) redaction() Redaction {
	switch {
	case strings.HasPrefix(c.Type, hashOf):
		return RedactHash
	case c.Type == maskOf:
		return RedactMask
	}
	return ""
}

// Hashed is the column of the key as it is hashed by a key.
func (c KeyColumn) Hashed(key *HashKey) KeyColumn {
	return KeyColumn{Column: c.Redacted(RedactHash), Width: "key " + key.Fingerprint(), Encoding: events.EncodingHash}
}

// rehashed reports whether other columns of the key are hashed, or by another key: the
// same rows have other keys then.
func (f KeyForm) rehashed(now []KeyColumn) bool {
	return !slices.Equal(hashes(f), hashes(now))
}

// checkHashes refuses another hash of the columns of which the stream has made keys. It
// comes before a definition is replaced: a node with a wrong key must not keep the others
// from polling. [journal.checkColumns] knows the columns of a stream that remembers none.
func (j *journal) checkHashes() error {
	f := j.keys
	if len(f) == 0 {
		return nil
	}
	now := slices.Clone(f)
	for i, c := range now {
		now[i].Encoding = ""
		if j.spec.Query.Redaction(c.Name) == RedactHash {
			now[i] = c.Hashed(j.spec.Query.HashKey)
		}
	}
	return j.refuseRehashed(now)
}

func (j *journal) refuseRehashed(now []KeyColumn) error {
	if j.cursor.Rows == 0 || !j.keys.rehashed(now) {
		return nil
	}
	return fmt.Errorf("%w: its key is hashed in another way, by which the rows that were observed have other keys; "+
		"take the former redact and redact-key-file, or run `observerd observers reset %s --forget` to forget those rows", ErrQueryChanged, j.spec.Stream)
}

// hashes are the hashed columns, each with its key.
func hashes(columns []KeyColumn) (found []string) {
	for _, c := range columns {
		if c.Encoding == events.EncodingHash {
			found = append(found, strings.ToLower(c.Name)+" "+c.Width)
		}
	}
	return found
}
