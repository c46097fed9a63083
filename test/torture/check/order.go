package check

import "fmt"

// order finds events of a version of a row behind those of a later version.
// A reset does not excuse it: the source has only the last one.
func (c *checker) order(s *stream) {
	for _, key := range s.keys {
		var last int64
		for i, e := range s.rows[key].events {
			if e.N > 0 && e.N < last {
				before := s.rows[key].events[i-1]
				c.blame(Violation{
					Kind: Reordered, Subject: s.Name, Key: key,
					What: fmt.Sprintf("version %d of the row comes after version %d", e.N, last),
					IDs:  []string{eventID(before), eventID(e)}, From: s.when(before.Seq), To: s.when(e.Seq),
				})
			}
			last = max(last, e.N)
		}
	}
}
