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

func (l *loader) checkSinks(sinks []Sink) {
	f := l.newFamilyChecker("sink", "a sink that writes to this place")
	for i, s := range sinks {
		f.check(fmt.Sprintf("sinks[%d]", i), s.ID, s.Settings)
	}
	if len(sinks) == 0 && l.OK("sinks") {
		l.Warn("sinks", "there are no sinks, so events stay in the event log; write some below sinks")
	}
}

// familyChecker checks the sections of one family, such as the sinks: no two have one id,
// and no two lead to one place.
type familyChecker struct {
	resolver

	// section is what one is called, and same what another is called that leads to a place.
	section, same string
	// ids and targets are those so far, and where they are.
	ids, targets map[string]string
}

func (r resolver) newFamilyChecker(section, same string) familyChecker {
	return familyChecker{resolver: r, section: section, same: same, ids: make(map[string]string), targets: make(map[string]string)}
}

// check completes the settings of a section, and asks them what else is wrong.
func (f familyChecker) check(path, id string, settings kind.Settings) {
	if !f.OK(path) {
		return // It is no section at all.
	}
	checkName(f.Report, path+".id", id)
	checkUnique(f.Report, f.ids, id, path+".id", "a "+f.section+" "+quote(id))
	switch {
	case settings == nil && f.OK(path+".id", path+".type"): // No type is wrong where there is no kind at all.
		f.Reject(path+".type", "this program has no kind of "+f.section+"; remove this entry")
	case settings == nil || !f.complete(path, settings):
	default:
		if key, target := settings.Target(); target != "" {
			checkUnique(f.Report, f.targets, target, join(path, cmp.Or(key, "type")), f.same)
		}
	}
}
