package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
)

// Defaults returns the event and the detection of a type, with a timestamp or without.
// The event is empty for a name that looks like a mistyped one of a built-in type.
func Defaults(typ string, timed bool) (event, detect string) {
	preset := builtin{detect: DetectChange}
	if nearest.Name(typ, builtinNames()) == "" {
		preset.event = OwnEvent(typ)
	}
	if b, ok := fn.Find(builtins(), func(b builtin) bool { return b.name == typ }); ok {
		preset = b
	}
	if preset.detect == DetectChange && !timed {
		preset.detect = DetectSnapshot
	}
	return preset.event, preset.detect
}

// presets fills in what depends on the type.
func (c observerChecker) presets(path string, o *Observer) {
	event, detect := Defaults(o.Type, c.IsSet(path+".timestamp"))
	if o.Detect == "" && c.OK(path+".detect") {
		o.Detect = detect
	}
	if !c.IsSet(path + ".event") {
		o.Event = event
	}
	c.checkEvent(path, o)
}

var eventType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$`)

func (c observerChecker) checkEvent(path string, o *Observer) {
	key := path + ".event"
	switch {
	case !c.OK(key, path+".type"):
	case o.Event == "" && !c.IsSet(key):
		c.Reject(key, fmt.Sprintf("event is missing, and %s is not a built-in type; set type: %s, or for a type of your own event: %s",
			quote(o.Type), nearest.Name(o.Type, builtinNames()), OwnEvent(o.Type)))
	case !eventType.MatchString(o.Event):
		c.Reject(key, "this is not the type of an event; use letters, digits and . _ : / -, for example NewOrderObservedEvent")
	}
}

// OwnEvent is the event of a type that is not built in: StockCountObservedEvent for
// stock-count.
func OwnEvent(typ string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(typ, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String() + "ObservedEvent"
}

// checkDetection checks the detection, which may need a timestamp.
func (c observerChecker) checkDetection(path string, o *Observer) {
	detect := path + ".detect"
	timed := c.IsSet(path + ".timestamp")
	if o.Detect == DetectChange && !timed && c.OK(detect, path+".timestamp", path+".type") {
		c.Reject(detect, "detect: change needs a timestamp; set timestamp, or detect: snapshot")
	}
	if !timed {
		c.warnUnused(path, "without a timestamp", "overlap", "max-lookback", "null-timestamp")
	}
	if o.Detect != DetectSnapshot && c.OK(detect) {
		c.warnUnused(path, "without detect: snapshot", "max-gone")
	}
}

func (c observerChecker) warnUnused(path, without string, keys ...string) {
	for _, key := range keys {
		if at := path + "." + key; c.IsSet(at) && c.OK(at) {
			c.Warn(at, key+" has no effect "+without+"; remove it")
		}
	}
}
