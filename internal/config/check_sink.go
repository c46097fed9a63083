package config

import (
	"cmp"
	"fmt"
)

// sinkChecker checks the section sinks.
type sinkChecker struct{ resolver }

func (c sinkChecker) checkSinks(sinks []Sink) {
	ids, targets := make(map[string]string), make(map[string]string)
	for i, s := range sinks {
		path := fmt.Sprintf("sinks[%d]", i)
		if !c.OK(path) {
			continue // It is no section at all.
		}
		checkName(c.Report, path+".id", s.ID)
		checkUnique(c.Report, ids, s.ID, path+".id", "a sink "+quote(s.ID))
		if s.Settings != nil {
			c.checkSinkSettings(path, s, targets)
		}
	}
	if len(sinks) == 0 && c.OK("sinks") {
		c.Warn("sinks", "there are no sinks, so events stay in the event log; write some below sinks")
	}
}

// checkSinkSettings completes the settings, asks them what else is wrong, and keeps two
// sinks from writing into one another's lines.
func (c sinkChecker) checkSinkSettings(path string, s Sink, targets map[string]string) {
	if !c.complete(path, s.Settings) {
		return
	}
	if key, target := s.Settings.Target(); target != "" {
		checkUnique(c.Report, targets, target, join(path, cmp.Or(key, "type")), "a sink that writes to this place")
	}
}
