package check

import (
	"fmt"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// The changes that an event tells of.
const (
	changeNew     = "new"
	changeChanged = "changed"
	changeGone    = "gone"
)

// unexpected finds events of what the source never committed: rolled back, made
// up, or the end of a row that was there all the time. And it finds events of a
// version of a row behind those of a later version.
func (c *checker) unexpected(s *stream) {
	for _, key := range s.keys {
		r := s.rows[key]
		var seen int64 // the last version that an event had
		for i, e := range r.events {
			what := ""
			switch {
			case len(r.writes) == 0:
				what = "the source never had this row"
			case e.Change == changeGone:
				if !goneBetween(r, seen, nextVersion(r.events[i+1:])) {
					what = fmt.Sprintf("the row was not gone after version %d", seen)
				}
			case e.N < 1 || e.N > int64(len(r.writes)):
				what = fmt.Sprintf("the source has %d versions of this row, not one with number %d", len(r.writes), e.N)
			case r.writes[e.N-1].Gone:
				what = fmt.Sprintf("the row has no data in version %d: it is gone", e.N)
			}
			if what != "" {
				c.blameEvent(Unexpected, s, e, "%s", what)
			}
			// A reset does not excuse that: the source has only the last version.
			if e.N > 0 && e.N < seen {
				c.blameEvent(Reordered, s, e, "version %d of the row comes after version %d", e.N, seen)
			}
			seen = max(seen, e.N)
		}
	}
}

// nextVersion is the version of the next event that has one; 0 for none.
func nextVersion(events []*history.Event) int64 {
	for _, e := range events {
		if e.N > 0 {
			return e.N
		}
	}
	return 0
}

// goneBetween reports whether a row was deleted after one version and before
// another, which may be 0.
func goneBetween(r *row, after, before int64) bool {
	if before == 0 {
		before = int64(len(r.writes)) + 1
	}
	for n := after + 1; n < before && n <= int64(len(r.writes)); n++ {
		if r.writes[n-1].Gone {
			return true
		}
	}
	return false
}
