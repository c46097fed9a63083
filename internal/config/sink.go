package config

import (
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
