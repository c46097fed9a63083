package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
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
	// Filter leaves events out.
	Filter Filter `key:"filter"`
	// OnPoison is what becomes of an event that the sink refuses for good: "stop" halts its
	// stream, "park" puts it and later events of its key aside. Default: stop.
	OnPoison string `key:"on-poison" default:"stop" oneof:"stop|park"`
	// BatchSize is how many events are delivered at once. Default: what suits the kind.
	BatchSize int `key:"batch-size" shown:"what suits the type" min:"1" max:"10000" unit:"events"`
	// BatchBytes ends a batch early whose data is large; it has one event at least.
	// Default: 4 MiB.
	BatchBytes int `key:"batch-bytes" default:"4194304" min:"65536" max:"67108864" unit:"bytes"`
}

// Filter says which events a sink is given: those that fit all of its keys. The zero value
// takes every event.
type Filter struct {
	// Types and Streams are those of the events. Default: all.
	Types   []string `key:"types" shown:"all" unit:"event types"`
	Streams []string `key:"streams" shown:"all" unit:"observers"`
	// Changes are new, changed and gone. Default: all.
	Changes []string `key:"changes" shown:"all" unit:"new, changed, gone"`
	// SubjectPrefix is what the subjects begin with.
	SubjectPrefix string `key:"subject-prefix" unit:"text"`
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

func (l *loader) checkSinks(sinks []Sink, observers []Observer) {
	members := make([]member, len(sinks))
	for i, s := range sinks {
		members[i] = member{s.ID, s.Settings}
		l.checkFilter(fmt.Sprintf("sinks[%d].filter", i), s.Filter, observers)
	}
	l.checkFamily("sinks", "sink", "a sink that writes to this place", members)
	if len(sinks) == 0 && l.OK("sinks") {
		l.Warn("sinks", "there are no sinks, so events stay in the event log; add some below sinks")
	}
}

// checkFilter finds names that no event has.
func (l *loader) checkFilter(path string, f Filter, observers []Observer) {
	streams := fn.Each(observers, func(o Observer) string { return o.ID })
	types := fn.Each(observers, func(o Observer) string { return o.Event })
	for _, c := range []struct {
		key, what    string
		names, known []string
	}{
		{".streams", "observer", f.Streams, streams},
		{".types", "event type", f.Types, types},
		{".changes", "change", f.Changes, []string{"new", "changed", "gone"}},
	} {
		for _, name := range c.names {
			if !slices.Contains(c.known, name) && l.OK("observers", path+c.key) {
				l.Reject(path+c.key, "there is no "+c.what+" "+quote(name)+"; "+nearest.Suggest(name, c.known))
			}
		}
	}
}

// member is a section of a family, such as a sink.
type member struct {
	id       string
	settings kind.Settings
}

// checkFamily completes the settings of the sections in a list, and asks them what else is
// wrong: no two have one id, and no two lead to one place. section is what one is called, and
// same what another is called that leads to a place.
func (r resolver) checkFamily(list, section, same string, members []member) {
	ids, targets := make(map[string]string), make(map[string]string)
	for i, m := range members {
		path := fmt.Sprintf("%s[%d]", list, i)
		if !r.OK(path) {
			continue // It is no section at all.
		}
		checkName(r.Report, path+".id", m.id)
		checkUnique(r.Report, ids, m.id, path+".id", "a "+section+" "+quote(m.id))
		if m.settings == nil && r.OK(path+".id", path+".type") { // No type is wrong where there is no kind at all.
			r.Reject(path+".type", "this program has no kind of "+section+"; remove this entry")
		}
		if m.settings == nil || !r.complete(path, m.settings) {
			continue
		}
		if key, target := m.settings.Target(); target != "" {
			checkUnique(r.Report, targets, target, join(path, cmp.Or(key, "type")), same)
		}
	}
}
