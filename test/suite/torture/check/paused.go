package check

import "github.com/observerd/observerd/test/suite/torture/history"

// paused finds commits to a stream between the operator's pause and resume. An
// act is noted while the cursor's row is locked, so each step lies before or
// after it by time, too.
func (c *checker) paused(s *stream) {
	var pause *history.Act
	next := 0
	for _, step := range s.steps {
		for ; next < len(s.acts) && s.acts[next].At.Before(step.At); next++ {
			switch s.acts[next].Action {
			case "pause":
				pause = s.acts[next]
			case "resume":
				pause = nil
			}
		}
		if pause == nil || step.Node == "" || !moved(step) {
			continue
		}
		c.blameStep(PausedCommit, s, step, "%s committed while the stream was paused, by transaction %s", step.Node, pause.Xid)
	}
}
