package observer

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
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
	hashed      bool
	id          uuid.UUID // set by identify
}

// identify sets the id of the event that the row has if it is new to the stream.
func (r *row) identify(stream string, epoch int64) {
	r.hashData()
	r.id = events.NewID(stream, epoch, r.key, 1, r.hash[:])
}

// hashData sets the hash of the data, once.
func (r *row) hashData() {
	if r.hashed {
		return
	}
	r.hashed = true
	sum := sha256.Sum256(askedData(r.data, r.asked))
	r.hash = [hashSize]byte(sum[:hashSize])
}

// batch is the rows of one chunk and their keys, to look them up.
type batch struct {
	rows  []row
	keys  []string
	data  arena // of the rows
	bytes int
}

// lastDated is the last row with a timestamp, which has the highest; nil for none.
func lastDated(rows []row) *row {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].cursor != "" {
			return &rows[i]
		}
	}
	return nil
}

// lastKey is the last key of the rows that can be read.
func lastKey(rows []row) string {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].key != "" {
			return rows[i].key
		}
	}
	return ""
}

// The blocks of an arena grow from one that suits the few rows of an ordinary poll to one
// in which rows cost no allocation of their own, and that is small beside a chunk.
const (
	smallestBlock = 4 << 10
	doublings     = 6
	largestBlock  = smallestBlock << doublings
)

// arena copies many small byte slices into few large ones.
type arena struct {
	free   []byte
	blocks [][]byte
	used   int // of the blocks
}

// reset makes room of all that was copied.
func (a *arena) reset() { a.free, a.used = nil, 0 }

func (a *arena) copy(data []byte) []byte {
	n := len(data)
	if n == 0 {
		return nil
	}
	if n > len(a.free) {
		if n > largestBlock/4 {
			return bytes.Clone(data)
		}
		a.free = a.block(n)
	}
	to := a.free[:n:n]
	a.free = a.free[n:]
	copy(to, data)
	return to
}

// block is the next one, of at least so many bytes.
func (a *arena) block(n int) []byte {
	for a.used < len(a.blocks) && len(a.blocks[a.used]) < n {
		a.used++
	}
	if a.used == len(a.blocks) {
		a.blocks = append(a.blocks, make([]byte, max(n, smallestBlock<<min(a.used, doublings))))
	}
	a.used++
	return a.blocks[a.used-1]
}
