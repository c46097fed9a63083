package check

import "github.com/observerd/observerd/test/suite/torture/history"

// cursor finds steps that do not begin where the one before them ended, or that
// move something back. A reset by an operator sets the mark back, and nothing
// else.
func (c *checker) cursor(s *stream) {
	var before *history.Step
	for _, step := range s.steps {
		if step.Node != "" && moved(step) {
			c.report.Counts[Commits]++
		}
		if before == nil {
			// The first step begins a cursor, whatever made its row.
			before = &history.Step{NewVersion: step.OldVersion}
		}
		c.linked(s, before, step)
		before = step
	}
}

func (c *checker) linked(s *stream, before, step *history.Step) {
	switch {
	case step.OldVersion != before.NewVersion:
		c.blameStep(CursorUnlinked, s, step, "it begins at version %d, the one before it ended at %d", step.OldVersion, before.NewVersion)
	case step.OldSeq != before.NewSeq:
		c.blameStep(CursorUnlinked, s, step, "it begins at sequence %d, the one before it ended at %d", step.OldSeq, before.NewSeq)
	case step.OldLow != before.NewLow:
		c.blameStep(CursorUnlinked, s, step, "it begins at the mark %q, the one before it ended at %q", step.OldLow, before.NewLow)
	}
	switch {
	case step.NewVersion < step.OldVersion:
		c.blameStep(CursorBackwards, s, step, "the version goes from %d to %d", step.OldVersion, step.NewVersion)
	case step.NewVersion > step.OldVersion+1:
		c.blameStep(CursorUnlinked, s, step, "the version goes from %d to %d", step.OldVersion, step.NewVersion)
	case step.NewVersion == step.OldVersion && moved(step):
		c.blameStep(CursorUnlinked, s, step, "the cursor moves under version %d", step.OldVersion)
	}
	if step.NewSeq < step.OldSeq {
		c.blameStep(CursorBackwards, s, step, "the sequence goes from %d to %d", step.OldSeq, step.NewSeq)
	}
	if step.NewLow < step.OldLow && !s.resets(step) {
		c.blameStep(CursorBackwards, s, step, "the mark goes from %q to %q without a reset", step.OldLow, step.NewLow)
	}
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
