package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

const histories = "histories"

// enough is the number of histories from which on a fact that never happened
// says something about the histories, and not about luck.
const enough = 1000

// Tally counts what happened in all histories of a check. It is safe for
// concurrent use.
type Tally struct {
	mu    sync.Mutex
	facts map[string]int
}

// Count notes that the fact has happened once more.
func (c *Tally) Count(fact string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[fact]++
}

// Demand fails the test when one of the facts never happened: histories that
// do not meet a fault prove nothing about it. A check of few histories, such
// as one that is run again by its seed, is let off.
func (c *Tally) Demand(t *testing.T, facts ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts[histories] < enough {
		return
	}
	for _, fact := range facts {
		if c.facts[fact] == 0 {
			t.Errorf("%q never happened in %d histories: nothing was proved about it", fact, c.facts[histories])
		}
	}
}

// String lists the facts.
func (c *Tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, fact := range slices.Sorted(maps.Keys(c.facts)) {
		if fact != histories {
			list = append(list, fmt.Sprintf("%s %d", fact, c.facts[fact]))
		}
	}
	return strings.Join(list, ", ")
}
