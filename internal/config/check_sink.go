package config

import (
	"fmt"
	"path/filepath"
)

func (l *loader) checkSinks(sinks []Sink) {
	ids, targets := make(map[string]string), make(map[string]string)
	for i, s := range sinks {
		path := fmt.Sprintf("sinks[%d]", i)
		if !l.ok(path) {
			continue // It is no section at all.
		}
		l.checkName(path+".id", s.ID)
		l.checkUnique(ids, s.ID, path+".id", "a sink "+quote(s.ID))
		sinks[i].Path = l.fileName(path+".path", s.Path)
		l.checkPath(path, sinks[i], targets)
	}
	if len(sinks) == 0 && l.ok("sinks") {
		l.warn("sinks", "there are no sinks, so events stay in the event log; write some below sinks")
	}
}

// checkPath also keeps two sinks from writing into one another's lines.
func (l *loader) checkPath(path string, s Sink, targets map[string]string) {
	key := path + ".path"
	has := l.set(key)
	switch {
	case s.Type == SinkStdout && has:
		l.reject(key, "a sink of type stdout has no path; remove it, or write type: file")
	case s.Type == SinkStdout:
		l.checkUnique(targets, "stdout", path+".type", "a sink of type stdout")
	case s.Type == SinkFile && (!has || s.Path == "") && l.ok(key):
		l.reject(key, "path is missing; write the name of the file")
	case s.Type == SinkFile && l.ok(key):
		target, err := filepath.Abs(s.Path)
		if err != nil {
			target = filepath.Clean(s.Path)
		}
		l.checkUnique(targets, "file "+target, key, "a sink with this path")
	}
}
