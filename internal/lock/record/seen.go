package record

import (
	"maps"
	"sync"
	"time"
)

// When a process remembers mostSeen records, it forgets those whose leases were over for
// keptSeen, and looks for them every sweepSeen at most. Of a record that is forgotten, the TTL
// counts anew.
const (
	mostSeen  = 10_000
	keptSeen  = time.Hour
	sweepSeen = time.Minute
)

// seen are the records of terms as this process has last seen them, by region and key.
type seen struct {
	mu      sync.Mutex
	records map[[2]string]Record
	swept   time.Time
}

// note notes a record that was just read or written, and returns it with the moment since which
// it is known to be unchanged. That is after the write.
func (s *seen) note(r Record) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := [2]string{r.Region, r.Key}
	before, known := s.records[at]
	switch r.since = time.Now(); {
	case r.Term == "":
		delete(s.records, at)
	case known && before.Version == r.Version:
		return before
	default:
		if len(s.records) >= mostSeen && r.since.Sub(s.swept) >= sweepSeen {
			s.swept = r.since
			maps.DeleteFunc(s.records, func(_ [2]string, old Record) bool { return old.left() < -keptSeen })
		}
		s.records[at] = r
	}
	return r
}

// last returns a record as it was last seen, without a term if nobody had the lock.
func (s *seen) last(region, key string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[[2]string{region, key}]
}
