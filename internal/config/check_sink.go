package config

import (
	"fmt"
	"reflect"
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

// checkSinkSettings fills in the names of files, and keeps two sinks from writing into one
// another's lines.
func (c sinkChecker) checkSinkSettings(path string, s Sink, targets map[string]string) {
	last := join(path, "type")
	names{}.walk(reflect.ValueOf(s), path, func(p place) bool {
		if p.tag.Get("unit") != "file name" {
			return true
		}
		last = p.at
		switch name := p.value.String(); {
		case !c.OK(p.at):
		case name == "" && c.IsSet(p.at):
			c.Reject(p.at, p.key+" is empty; write the name of a file")
		default:
			p.value.SetString(c.fileName(p.at, name))
		}
		return true
	})
	if target := s.Settings.Target(); target != "" && c.OK(last) {
		checkUnique(c.Report, targets, target, last, "a sink that writes to this place")
	}
}
