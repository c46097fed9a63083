//go:build nightly

package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
)

// TestTenThousandObserversInShards has a type in ten shards on ten nodes. A poll takes 50 ms and
// a node polls eight at a time, so that one node would take a minute for all of them: the turns
// of each ten seconds are taken in time.
func TestTenThousandObserversInShards(t *testing.T) {
	const shards, observers, often = 10, 1000, 10 * time.Second
	story(t, func(t *testing.T, db *memory) {
		for n := range shards {
			start(t, db, fmt.Sprintf("n%02d", n), func(o *schedule.Options) {
				o.Logger, o.Types, o.Concurrency = nil, nil, 8
				for k := range shards {
					name := fmt.Sprintf("order#%d", k+1)
					typ := schedule.Type{Name: name, Interval: often, Request: request(name, o.Node.Name), Wait: time.Second}
					for i := range observers {
						typ.Observers = append(typ.Observers, &stream{id: fmt.Sprintf("%s-%d", name, i), do: after(50 * time.Millisecond)})
					}
					o.Types = append(o.Types, typ)
				}
			})
		}
		settle()
		const cycles = 4
		turns := make(map[string]int)
		for k := range shards {
			name := fmt.Sprintf("order#%d", k+1)
			turns[name] = len(db.taken(name))
		}
		pass(cycles * often)
		for name, before := range turns {
			taken := db.taken(name)
			equal(t, "turns of "+name, len(taken)-before, cycles)
			if last := taken[len(taken)-1]; last.Finished.Sub(last.At) > often {
				t.Errorf("a turn of %s ends %s after its tick", name, last.Finished.Sub(last.At))
			}
		}
	})
}
