package observer

import (
	"encoding/binary"
	"math/bits"
)

// bitmap is a set of row numbers. They are dense, so ten million rows take
// 1.25 MB, where a set of their keys would take most of a gigabyte.
type bitmap struct {
	words []uint64
	// count is the number of members.
	count int64
}

func (b *bitmap) has(n int64) bool {
	word := int(n >> 6)
	return word < len(b.words) && b.words[word]&(1<<(n&63)) != 0
}

func (b *bitmap) add(n int64) {
	if b.has(n) {
		return
	}
	b.grow(int(n>>6) + 1)
	b.words[n>>6] |= 1 << (n & 63)
	b.count++
}

// cut removes the members above n.
func (b *bitmap) cut(n int64) {
	for word := max(0, int((n+1)>>6)); word < len(b.words); word++ {
		keep := uint64(0)
		if word == int((n+1)>>6) {
			keep = 1<<((n+1)&63) - 1
		}
		b.count -= int64(bits.OnesCount64(b.words[word] &^ keep))
		b.words[word] &= keep
	}
}

func (b *bitmap) grow(words int) {
	if missing := words - len(b.words); missing > 0 {
		b.words = append(b.words, make([]uint64, missing)...)
	}
}

// merge adds the members of another set.
func (b *bitmap) merge(other bitmap) {
	b.grow(len(other.words))
	for i, word := range other.words {
		b.count += int64(bits.OnesCount64(word &^ b.words[i]))
		b.words[i] |= word
	}
}

// clear empties the set and keeps its room.
func (b *bitmap) clear() {
	clear(b.words)
	b.count = 0
}

// encode writes the words, each with its lowest byte first.
func (b *bitmap) encode() []byte {
	text := make([]byte, 0, 8*len(b.words))
	for _, word := range b.words {
		text = binary.LittleEndian.AppendUint64(text, word)
	}
	return text
}

// decodeBitmap reads what encode wrote.
func decodeBitmap(text []byte) (b bitmap) {
	b.words = make([]uint64, len(text)/8)
	for i := range b.words {
		b.words[i] = binary.LittleEndian.Uint64(text[8*i:])
		b.count += int64(bits.OnesCount64(b.words[i]))
	}
	return b
}
