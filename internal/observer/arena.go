package observer

// arenaBlock is large enough that rows of ordinary size cost no allocation of
// their own, and small beside a chunk.
const arenaBlock = 256 << 10

// arena copies many small byte slices into few large ones. They are never
// overwritten, so a copy is valid as long as it is referred to.
type arena struct{ free []byte }

func (a *arena) copy(data []byte) []byte {
	n := len(data)
	if n == 0 {
		return nil
	}
	if n > len(a.free) {
		if n > arenaBlock/4 {
			return append([]byte(nil), data...)
		}
		a.free = make([]byte, arenaBlock)
	}
	to := a.free[:n:n]
	a.free = a.free[n:]
	copy(to, data)
	return to
}
