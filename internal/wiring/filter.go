package wiring

import (
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
)

// Wanted returns what reports whether a sink with that filter is given an event; nil for one
// that is given all.
func Wanted(f config.Filter) func(*events.Event) bool {
	if len(f.Types)+len(f.Streams)+len(f.Changes) == 0 && f.SubjectPrefix == "" {
		return nil
	}
	in := func(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }
	return func(e *events.Event) bool {
		return in(f.Types, e.Type) && in(f.Streams, e.Stream) && in(f.Changes, string(e.Change)) && strings.HasPrefix(e.Subject, f.SubjectPrefix)
	}
}
