package relay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// haltPace is how long a halted stream is left alone before it is tried again.
const haltPace = 15 * time.Second

// halt is why a stream is not delivered.
type halt struct {
	// offset is where it was halted: it is tried at once when that has moved.
	offset int64
	reason string
	again  time.Time
	// tried says that it is. unlike says that what the sink holds is the reason.
	tried, unlike bool
}

// stays reports whether a stream is halted, and is not to be tried now.
func (t *term) stays(stream string, offset int64) bool {
	h, ok := t.halted[stream]
	return ok && h.offset == offset && time.Now().Before(h.again)
}

// halt delivers no more of a stream for the present.
func (t *term) halt(stream string, offset int64, why error) {
	known := t.halted[stream]
	t.halted[stream] = halt{offset: offset, reason: why.Error(), again: time.Now().Add(haltPace)}
	t.metrics.halted.Set(float64(len(t.halted)))
	if known.reason != why.Error() {
		t.opts.Logger.Error("Stream halted", "stream", stream, "offset", offset, "err", why)
	}
}

func (t *term) resume(stream string) {
	if _, ok := t.halted[stream]; !ok {
		return
	}
	delete(t.halted, stream)
	t.metrics.halted.Set(float64(len(t.halted)))
	t.opts.Logger.Info("Stream continues", "stream", stream)
}

// try takes in that a stream is read, though it may be halted.
func (t *term) try(stream string) {
	if h, ok := t.halted[stream]; ok {
		h.tried = true
		t.halted[stream] = h
	}
}

// unhalted leaves out the parts of streams that were halted since they were read.
func (t *term) unhalted(parts []part) []part {
	return slices.DeleteFunc(parts, func(p part) bool {
		h, ok := t.halted[p.stream()]
		return ok && !h.tried
	})
}

// whyHalted says which streams are halted, and why; empty for none.
func (t *term) whyHalted() string {
	return abridged(fn.Each(slices.Sorted(maps.Keys(t.halted)), func(stream string) string {
		return fmt.Sprintf("%s is not delivered: %s", stream, t.halted[stream].reason)
	}))
}

// abridged joins the first of many texts.
func abridged(texts []string) string {
	const most = 3
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}
