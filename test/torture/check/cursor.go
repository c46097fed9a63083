package check

import (
	"fmt"

	"github.com/observerd/observerd/test/torture/history"
)

// cursor finds steps that do not begin where the one before them ended, or that
// move something back. A reset by an operator sets the mark back, and nothing
// else.
func (c *checker) cursor(s *stream) {
	var before *history.Step
	for _, step := range s.steps {
		if step.Node != "" && moved(step) {
			c.report.Counts[Commits]++
		}
		for _, v := range s.faulty(before, step) {
			v.Subject, v.IDs, v.To = s.Name, []string{stepID(step)}, step.At
			if before != nil {
				v.IDs, v.From = []string{stepID(before), stepID(step)}, before.At
			}
			c.blame(v)
		}
		before = step
	}
}

func (s *stream) faulty(before, step *history.Step) (all []Violation) {
	add := func(kind Kind, format string, args ...any) {
		all = append(all, Violation{Kind: kind, What: fmt.Sprintf(format, args...)})
	}
	if before == nil {
		// The first step begins a cursor, whatever made its row.
		before = &history.Step{NewVersion: step.OldVersion}
	}
	switch {
	case step.OldVersion != before.NewVersion:
		add(CursorUnlinked, "it begins at version %d, the one before it ended at %d", step.OldVersion, before.NewVersion)
	case step.OldSeq != before.NewSeq:
		add(CursorUnlinked, "it begins at sequence %d, the one before it ended at %d", step.OldSeq, before.NewSeq)
	case step.OldLow != before.NewLow:
		add(CursorUnlinked, "it begins at the mark %q, the one before it ended at %q", step.OldLow, before.NewLow)
	}
	switch {
	case step.NewVersion < step.OldVersion:
		add(CursorBackwards, "the version goes from %d to %d", step.OldVersion, step.NewVersion)
	case step.NewVersion > step.OldVersion+1:
		add(CursorUnlinked, "the version goes from %d to %d", step.OldVersion, step.NewVersion)
	case step.NewVersion == step.OldVersion && (step.NewSeq != step.OldSeq || step.NewLow != step.OldLow):
		add(CursorUnlinked, "the cursor moves under version %d", step.OldVersion)
	}
	if step.NewSeq < step.OldSeq {
		add(CursorBackwards, "the sequence goes from %d to %d", step.OldSeq, step.NewSeq)
	}
	if step.NewLow < step.OldLow && !s.resets(step) {
		add(CursorBackwards, "the mark goes from %q to %q without a reset", step.OldLow, step.NewLow)
	}
	return all
}

// resets reports whether an operator's reset made the step.
func (s *stream) resets(step *history.Step) bool {
	act := s.acted[step.Xid]
	return act != nil && act.Action == "reset" && step.Node == ""
}

// moved reports whether the step is more than a note.
func moved(step *history.Step) bool {
	return step.NewVersion != step.OldVersion || step.NewSeq != step.OldSeq || step.NewLow != step.OldLow
}
