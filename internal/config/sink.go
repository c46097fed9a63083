package config

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/observerd/observerd/internal/kind"
)

// Sink is a receiver of every event.
type Sink struct {
	// ID names the sink; what it has stored is remembered under this name.
	// Letters a-z, digits and "-", at most 64. Required.
	ID string `key:"id" shown:"required" required:"true" unit:"name"`
	// Type is the name of the sink's kind. Required.
	Type string `key:"type" shown:"required" required:"true" oneof:"<sinks>"`
	// Settings are the keys of the kind. [Load] always sets them.
	Settings kind.Settings `kinds:"sinks"`
	// BatchSize is how many events are delivered at once. Default: 500.
	BatchSize int `key:"batch-size" default:"500" min:"1" max:"10000" unit:"events"`
}

// Written are the files to which the sink writes, by key: what its settings have in
// fields with the tag written:"true".
func (s Sink) Written() map[string]string {
	files := make(map[string]string)
	names{}.walk(reflect.ValueOf(s), "", func(p place) bool {
		if p.tag.Get("written") != "" {
			files[p.at] = p.value.String()
		}
		return true
	})
	return files
}

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
