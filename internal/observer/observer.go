package observer

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Observer polls one stream. Between two polls it remembers only what spares the source
// work and what was logged, so any node may do the next one. It is safe for
// concurrent use; of two polls at a time, one fails at its next commit.
type Observer struct {
	spec       Spec
	log        *slog.Logger
	identities identityHistory
	// tried is when a full read above a standing horizon was begun last.
	tried atomic.Pointer[time.Time]
	// future is how many rows in the source's future the last warning counted.
	future atomic.Int64
	// poison is what the last warning said of poison rows; nil for nothing.
	poison atomic.Pointer[poisonRows]
	// shared says that it was logged that rows share their key.
	shared atomic.Bool
	// rate is nil without a bound.
	rate *rate.Limiter
}

// New returns an observer, or every mistake in its description at once.
func New(spec Spec) (*Observer, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("observer %q: %w", spec.Stream, err)
	}
	o := &Observer{spec: spec, log: spec.Logger.With("stream", spec.Stream)}
	if spec.MaxRate > 0 {
		o.rate = rate.NewLimiter(rate.Limit(spec.MaxRate), spec.ChunkRows)
	}
	return o, nil
}

// identityKept is for how long a database that was replaced is remembered.
const identityKept = time.Hour

// identityHistory has the databases that were the cursor's, and when each answered
// last. A new one is not recorded before it is the cursor's: the poll that notices it
// may fail. The zero value is ready.
type identityHistory struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// record notes that the cursor's database has answered.
func (h *identityHistory) record(id string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.last, func(_ string, last time.Time) bool { return at.Sub(last) >= identityKept })
	if h.last == nil {
		h.last = make(map[string]time.Time)
	}
	h.last[id] = at
}

// isBack reports whether a database that answers now was the cursor's not long
// ago. While the one in its place answers too, it is remembered for longer; a
// database that answers alone is followed after a while.
func (h *identityHistory) isBack(id, known string, at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, found := h.last[id]
	if !found || at.Sub(last) >= identityKept {
		return false
	}
	if h.last[known].After(last) {
		h.last[id] = at
	}
	return true
}

// Stats counts what one poll did, up to its end or its failure.
type Stats struct {
	// Rows were read, Events written, Poison rows noted, Chunks committed.
	Rows, Events, Poison, Chunks int64
	// HorizonLag is how far the horizon lay behind the source's clock.
	HorizonLag time.Duration
	// ExactHorizon is [Horizon.Exact].
	ExactHorizon bool
	// Behind is how far the stream lay behind the source's clock at the end:
	// HorizonLag after a full read, else at least the age of the last row that
	// was compared; 0 for a query without a timestamp.
	Behind time.Duration
	// Full says that the poll ended at [Spec.MaxChanged], or with its time, and left
	// rows to the next one.
	Full bool
	// Lag is how far the last row of a full poll lay behind the source's clock; 0 for
	// other polls, and for a query without a timestamp.
	Lag time.Duration
	// Rewound says that the source was another database than before, and was read
	// again from where the stream began.
	Rewound bool
	// OnlyPoison is the class of the poison rows of a poll that has made nothing else: of
	// rows that are new, or of a stream without an event. It is empty for other polls.
	OnlyPoison PoisonClass
	// Readable reports whether any row was none of them.
	Readable bool
	// Future are the rows whose timestamp lay more than a minute above the
	// source's clock.
	Future int64
}
