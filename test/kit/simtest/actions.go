package simtest

import (
	"fmt"

	"pgregory.net/rapid"
)

// Actions are those of a state machine, for [rapid.T.Repeat], which picks each
// as often as any other.
type Actions map[string]func(*rapid.T)

// Often lets an action be picked that many times as often as others.
func (a Actions) Often(times int, name string) Actions {
	for i := range times - 1 {
		a[fmt.Sprintf("%s (%d)", name, i+2)] = a[name]
	}
	return a
}
