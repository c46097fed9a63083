package config

import (
	"fmt"
	"regexp"
	"strings"
)

// presets fills in what depends on the type.
func (l *loader) presets(path string, o *Observer) {
	preset := builtin{detect: DetectChange}
	for _, b := range builtins() {
		if b.name == o.Type {
			preset = b
		}
	}
	if o.Detect == "" && l.OK(path+".detect") {
		o.Detect = preset.detect
	}
	if !l.set(path + ".event") {
		o.Event = preset.event
	}
	l.checkEvent(path, o)
}

var eventType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$`)

func (l *loader) checkEvent(path string, o *Observer) {
	key := path + ".event"
	switch {
	case !l.OK(key, path+".type"):
	case o.Event == "" && !l.set(key):
		l.Reject(key, fmt.Sprintf("event is missing, and %s is not a built-in type; write for example event: %sObservedEvent",
			quote(o.Type), camel(o.Type)))
	case !eventType.MatchString(o.Event):
		l.Reject(key, "this is not the type of an event; write letters, digits and . _ : / -, for example NewOrderObservedEvent")
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
func (l *loader) checkDetection(path string, o *Observer) {
	detect := path + ".detect"
	timed := l.set(path + ".timestamp")
	if o.Detect == DetectChange && !timed && l.OK(detect, path+".timestamp", path+".type") {
		l.Reject(detect, "detect: change needs a timestamp; write timestamp, or detect: snapshot")
	}
	if !timed {
		l.warnUnused(path, "without a timestamp", "overlap", "max-lookback", "null-timestamp")
	}
	if o.Detect != DetectSnapshot && l.OK(detect) {
		l.warnUnused(path, "without detect: snapshot", "max-gone")
	}
}

func (l *loader) warnUnused(path, without string, keys ...string) {
	for _, key := range keys {
		if at := path + "." + key; l.set(at) && l.OK(at) {
			l.Warn(at, key+" has no effect "+without+"; remove it")
		}
	}
}
