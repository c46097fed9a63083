package lockdb_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// TestManyObservedRows looks for more keys than are looked up one by one at once, in orders
// that are and are not that of the index, among the rows of another stream. One store answers
// all of them, so that what it knew of other keys shows.
func TestManyObservedRows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		const rows = 12_000
		g := acquire(t, db, "order-observer-poll")
		all := make(map[string]observer.Observed, rows)
		var c observer.Cursor
		for _, stream := range []string{"another", "orders"} {
			s := db.Store(g)
			c = cursorOf(t, s, stream)
			ch := chunk(c, rows)
			clear(all)
			for i := range ch.New {
				o := &ch.New[i]
				o.Key = strconv.Itoa(i + 1)
				o.Hash = []byte(stream + "-hash-of-bytes")[:16]
				all[o.Key] = *o
			}
			c = mustCommit(t, s, ch)
		}
		numbers := func(from, to, step int) (keys []string) {
			for n := from; n < to; n += step {
				keys = append(keys, strconv.Itoa(n))
			}
			return keys
		}
		store := db.Store(g)
		reversed, shuffled := numbers(1, rows+1, 2), numbers(1, rows+1, 2)
		slices.Reverse(reversed)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for name, keys := range map[string][]string{
			"neighbours":           numbers(10_000, 12_001, 1),
			"with more digits":     numbers(8_000, 12_001, 1),
			"sparse":               numbers(1, rows+1, 5),
			"reversed":             reversed,
			"shuffled":             shuffled,
			"half of them new":     numbers(rows-2_000, rows+2_000, 1),
			"new":                  numbers(rows+1, rows+3_000, 1),
			"new at both ends":     slices.Concat([]string{"0"}, numbers(1, 2_500, 1), []string{"it's \"new\""}),
			"twice":                slices.Concat(numbers(1, 2_000, 1), numbers(1, 2_000, 1)),
			"fewer than the range": numbers(1, 20, 1),
			"with empty ones":      slices.Concat([]string{""}, numbers(1, 2_500, 1), []string{"", "7", ""}),
			"all empty":            {"", ""},
		} {
			found, err := store.Observed(t.Context(), c, keys)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(keys) {
				t.Fatalf("%s: %d answers to %d keys", name, len(found), len(keys))
			}
			for i, key := range keys {
				if want := all[key]; !sameObserved(found[i], want) {
					t.Fatalf("%s: of key %q found %+v, want %+v", name, key, found[i], want)
				}
			}
		}
	})
}

func sameObserved(a, b observer.Observed) bool {
	return a.Key == b.Key && string(a.Hash) == string(b.Hash) && a.Version == b.Version && a.Number == b.Number && a.Gone == b.Gone
}
