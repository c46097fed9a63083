package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/observerd/observerd/internal/nearest"
)

// presets fills in what depends on the type.
func (c observerChecker) presets(path string, o *Observer) {
	preset := builtin{detect: DetectChange}
	for _, b := range builtins() {
		if b.name == o.Type {
			preset = b
		}
	}
	if o.Detect == "" && c.OK(path+".detect") {
		o.Detect = preset.detect
	}
	if !c.IsSet(path + ".event") {
		o.Event = preset.event
	}
	c.checkEvent(path, o)
}

var eventType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$`)

func (c observerChecker) checkEvent(path string, o *Observer) {
	key := path + ".event"
	switch {
	case !c.OK(key, path+".type"):
	case o.Event == "" && !c.IsSet(key):
		instead := "for example"
		if near := nearest.Name(o.Type, builtinNames()); near != "" {
			instead = "type: " + near + ", or for a type of your own"
		}
		c.Reject(key, fmt.Sprintf("event is missing, and %s is not a built-in type; write %s event: %sObservedEvent",
			quote(o.Type), instead, camel(o.Type)))
	case !eventType.MatchString(o.Event):
		c.Reject(key, "this is not the type of an event; write letters, digits and . _ : / -, for example NewOrderObservedEvent")
	}
}

// camel is "StockCount" for stock-count.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// checkDetection checks the detection, which may need a timestamp.
func (c observerChecker) checkDetection(path string, o *Observer) {
	detect := path + ".detect"
	timed := c.IsSet(path + ".timestamp")
	if o.Detect == DetectChange && !timed && c.OK(detect, path+".timestamp", path+".type") {
		c.Reject(detect, "detect: change needs a timestamp; write timestamp, or detect: snapshot")
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
