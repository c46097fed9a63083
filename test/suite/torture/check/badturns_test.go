package check_test

import (
	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badTurns are polls that come too often.
func badTurns() []bad {
	second := func(b *breaker) *history.Turn {
		return pick(b, b.Turns, func(i int) bool { return b.turnBefore(i) != nil })
	}
	return []bad{
		{"a turn is taken twice", check.PolledTooOften, false, func(b *breaker) {
			i := place(b, b.Turns, func(i int) bool { return b.turnBefore(i) != nil })
			if i >= 0 {
				b.Turns[i].Turn = b.turnBefore(i).Turn
			}
		}},
		{"a turn is taken too soon", check.PolledTooOften, true, func(b *breaker) {
			t := second(b)
			t.Turn = t.Turn.Add(-interval / 2)
		}},
		{"a stream is polled again in its turn", check.PolledTooOften, true, func(b *breaker) {
			p := *pick(b, b.Parts, func(i int) bool { return b.Parts[i].Outcome == "ok" && b.lastPart(i) })
			p.ID = 1 << 40
			b.Parts = append(b.Parts, p)
		}},
		{"an earlier turn comes after a later one", check.PolledTooOften, true, func(b *breaker) {
			p := *pick(b, b.Parts, func(i int) bool { return b.Parts[i].Outcome == "ok" && b.lastPart(i) })
			p.ID, p.Turn, p.Outcome = 1<<40, p.Turn.Add(-interval), "unreachable"
			b.Parts = append(b.Parts, p)
		}},
	}
}

func (b *breaker) turnBefore(i int) *history.Turn {
	for j := i - 1; j >= 0; j-- {
		if b.Turns[j].Type == b.Turns[i].Type {
			return &b.Turns[j]
		}
	}
	return nil
}

func (b *breaker) lastPart(i int) bool {
	for _, p := range b.Parts[i+1:] {
		if p.Stream == b.Parts[i].Stream {
			return false
		}
	}
	return true
}
