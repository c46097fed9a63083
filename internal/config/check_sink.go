package config

import (
	"fmt"
	"reflect"
)

func (l *loader) checkSinks(sinks []Sink) {
	ids, targets := make(map[string]string), make(map[string]string)
	for i, s := range sinks {
		path := fmt.Sprintf("sinks[%d]", i)
		if !l.OK(path) {
			continue // It is no section at all.
		}
		l.checkName(path+".id", s.ID)
		l.checkUnique(ids, s.ID, path+".id", "a sink "+quote(s.ID))
		if s.Settings != nil {
			l.checkSinkSettings(path, s, targets)
		}
	}
	if len(sinks) == 0 && l.OK("sinks") {
		l.Warn("sinks", "there are no sinks, so events stay in the event log; write some below sinks")
	}
}

// checkSinkSettings fills in the names of files, and keeps two sinks from writing into one
// another's lines.
func (l *loader) checkSinkSettings(path string, s Sink, targets map[string]string) {
	place := join(path, "type")
	for _, entry := range entriesOf(reflect.ValueOf(s)) {
		if entry.tag.Get("unit") != "file name" {
			continue
		}
		at := join(path, entry.key)
		place = at
		switch name := entry.value.String(); {
		case !l.OK(at):
		case name == "" && l.set(at):
			l.Reject(at, entry.key+" is empty; write the name of a file")
		default:
			entry.value.SetString(l.fileName(at, name))
		}
	}
	if target := s.Settings.Target(); target != "" && l.OK(place) {
		l.checkUnique(targets, target, place, "a sink that writes to this place")
	}
}
