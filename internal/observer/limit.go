package observer

import (
	"cmp"
	"sync/atomic"
)

const (
	// limitLeast is the least to which failures reduce the rows of a read.
	limitLeast = 1000
	// limitFirst is what the first failure halves where nothing else is known.
	limitFirst = 100_000
	// limitMost is where a limit that was not configured ends again.
	limitMost = 1_000_000
)

// limit is how many rows one read may have. Reads that the source could not go
// on with make it smaller, polls that succeed larger. It is a guess, so two
// polls at a time may overwrite each other's.
type limit struct {
	// most is the configured one; 0 for none.
	most int
	// reduced is the present one; 0 while it is not reduced.
	reduced atomic.Int64
}

func (l *limit) get() int {
	if n := int(l.reduced.Load()); n > 0 {
		return n
	}
	return l.most
}

// adapt follows the outcome of a poll whose last read has had that many rows.
func (l *limit) adapt(err error, rows int) {
	switch {
	case ClassOf(err) == ClassRetry:
		l.reduce(rows)
	case err == nil:
		l.restore()
	}
}

func (l *limit) reduce(rows int) {
	n := max(cmp.Or(rows, l.get(), limitFirst)/2, limitLeast)
	if l.most > 0 {
		n = min(n, l.most)
	}
	l.reduced.Store(int64(n))
}

func (l *limit) restore() {
	n := 2 * l.reduced.Load()
	if n >= int64(cmp.Or(l.most, limitMost)) {
		n = 0
	}
	l.reduced.Store(n)
}
