package observer

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
	word := int(n >> 6)
	if missing := word + 1 - len(b.words); missing > 0 {
		b.words = append(b.words, make([]uint64, missing)...)
	}
	b.words[word] |= 1 << (n & 63)
	b.count++
}
