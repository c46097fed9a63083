package observer

import (
	"crypto/sha256"
	"slices"
	"time"
)

// hashSize is how much of the SHA-256 of a row's data is remembered: two rows
// are never the same by accident, and ten million hashes take 160 MB.
const hashSize = 16

// row is a source's row that outlives the next one.
type row struct {
	key, cursor string
	time        time.Time
	data        []byte
	asked       int
	err         error
	hash        [hashSize]byte // set by hashData
}

// hashData is for those who compare rows: reading them ahead is the longer half of
// a poll already, and not every row is compared.
func (r *row) hashData() {
	sum := sha256.Sum256(askedData(r.data, r.asked))
	r.hash = [hashSize]byte(sum[:hashSize])
}

// askedData is what a row is recognised by; see [Row.Asked].
func askedData(data []byte, asked int) []byte {
	if asked == 0 {
		return data
	}
	return append(slices.Clone(data[:asked]), '}')
}
