package simtest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"
)

// Kind is what befalls one call.
type Kind string

// What can befall a call. All but Refused and Hung may carry it out.
const (
	// Refused is not carried out; the error comes at once.
	Refused Kind = "refused"
	// Hung is not carried out, and not answered until its context ends.
	Hung Kind = "hung"
	// Slow is carried out late, unless its context ends first.
	Slow Kind = "slow"
	// Late is carried out at once; the answer comes late, whatever its context
	// says.
	Late Kind = "late"
	// Deaf is carried out late, whatever its context says, as by a process that
	// slept between looking and calling.
	Deaf Kind = "deaf"
	// Lost is carried out and answered with an error.
	Lost Kind = "lost"
	// Unanswered is carried out, and not answered until its context ends.
	Unanswered Kind = "unanswered"
	// Orphaned is answered with an error at once, and carried out later: the
	// caller is gone, what it sent is not.
	Orphaned Kind = "orphaned"
)

// Fault is what befalls the next call of a name.
type Fault struct {
	Kind Kind
	// Delay is that of the kinds that are late.
	Delay time.Duration
}

// String is the fault as a failed history shows it.
func (f Fault) String() string {
	switch f.Kind {
	case Slow, Late, Deaf, Orphaned:
		return fmt.Sprintf("%s by %s", f.Kind, f.Delay)
	}
	return string(f.Kind)
}

// Faults draws a fault whose delay is at most that. Without kinds, it may be
// any.
func Faults(longest time.Duration, kinds ...Kind) *rapid.Generator[Fault] {
	if len(kinds) == 0 {
		kinds = []Kind{Refused, Lost, Hung, Slow, Late, Deaf, Unanswered, Orphaned}
	}
	return rapid.Custom(func(t *rapid.T) Fault {
		return Fault{
			Kind:  rapid.SampledFrom(kinds).Draw(t, "kind"),
			Delay: Durations(longest).Draw(t, "delay"),
		}
	})
}

// Durations draws a time of at most that. Short and long ones are equally
// likely: what goes wrong differs by the order of magnitude.
func Durations(longest time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		scale := longest >> rapid.SampledFrom([]int{8, 5, 3, 2, 1, 0}).Draw(t, "magnitude")
		return scale/2 + time.Duration(rapid.Int64Range(1, int64(scale/2)).Draw(t, "duration"))
	})
}
