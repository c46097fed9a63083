package observer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
)

// Column is one member of the data of an event.
type Column struct {
	// Name is the column's, as the catalogue of the source spells it.
	Name string
	// Type is the source's name of its type, without lengths: a type that becomes
	// wider is the same type.
	Type string
}

// EncodeColumns writes columns as the cursor remembers them:
// [["order_id","bigint"],…], empty for none.
func EncodeColumns(columns []Column) string {
	if len(columns) == 0 {
		return ""
	}
	return encode(fn.Each(columns, func(c Column) [2]string { return [2]string{c.Name, c.Type} }))
}

func decodeColumns(text string) (columns []Column, err error) {
	pairs, err := decode[[][2]string](text, "columns")
	for _, pair := range pairs {
		columns = append(columns, Column{Name: pair[0], Type: pair[1]})
	}
	return columns, err
}

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
