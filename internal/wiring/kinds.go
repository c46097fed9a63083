// Package wiring lists the kinds of sinks that the program has.
package wiring

import (
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/events/sink/file"
	"github.com/observerd/observerd/internal/events/sink/stdout"
)

// sinks are the kinds of sinks. CONTRIBUTING.md says how another is added.
var sinks = []events.SinkKind{
	stdout.Kind,
	file.Kind,
}

// Kinds returns what the configuration has to know of each kind.
func Kinds() config.Kinds {
	var kinds config.Kinds
	for _, kind := range sinks {
		kinds.Sinks = append(kinds.Sinks, config.SinkKind{
			Name: kind.Name, Settings: func() config.SinkSettings { return kind.Settings() },
		})
	}
	return kinds
}
