//go:build nightly

package main

import (
	"slices"
	"testing"
)

func TestQuickRunMeasuresEverything(t *testing.T) {
	t.Parallel()
	measureQuickly(t, names(), slices.Concat(figuresOfADay, []string{
		"the lock: acquire and release", "three types", "exclusive by descriptor to a plain key", "by descriptor, shared",
		"luckiest to unluckiest, 64 contenders", "statements of the holder", "held locks add", "first byte, 50 viewers", "lines a day", "a file behind the event log",
		"streams with an event each", "two sql, a webhook and a kafka", "resident, while they wait", "times its CPU",
		"types, an observer each", "times Debezium's rate", "to the last row in the file",
	}))
}
