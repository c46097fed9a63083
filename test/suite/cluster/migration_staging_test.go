package cluster_test

import (
	"fmt"
	"testing"
)

// TestStagingSurvivesAKill is the rehearsal that docs/migration-from-spring.md
// asks for before the first step in production: three nodes at work, one of
// them killed while it polls, and not a row lost, repeated or polled twice.
func TestStagingSurvivesAKill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		s := openPostgres(t)
		h := newHost(t, m, s.url)
		nodes := map[string]*daemon{}
		for _, name := range []string{"a", "b", "c"} {
			nodes[name] = h.start(t, name, settings{}).ready(t)
		}
		quiet := s.busy(t)
		eventually(t, func() error { return m.shared(t, 3, []string{"a", "b", "c"}, 1, 1, 3) })
		killInPoll(t, m, nodes["b"])
		before := len(m.mustPolls(t))
		eventually(t, func() error {
			types := map[string]int{}
			for _, p := range m.mustPolls(t)[before:] {
				if p.node == "b" {
					continue // It may have noted its last poll after the look.
				}
				types[p.typ]++
			}
			for typ := range watched {
				if types[typ] < 3 {
					return fmt.Errorf("%s was polled %d times since", typ, types[typ])
				}
			}
			return nil
		})
		h.start(t, "b", settings{}).ready(t)
		eventually(t, func() error { return m.shared(t, 2, []string{"a", "b", "c"}, 1, 1, 3) })
		quiet()
		checkHistory(t, m, h.sink(), s.rows(t))
		if err := polledTwice(m.mustPolls(t)); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"a", "c"} {
			nodes[name].stops(t)
		}
	})
}
