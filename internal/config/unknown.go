package config

import (
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var printableKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// unknown reports a key with what was probably meant. The key is repeated only
// if it looks like one.
func (r reader) unknown(key *yaml.Node, t reflect.Type, path string) {
	r.rejectAt(position(key), path, "unknown key "+quoteKey(key.Value)+"; "+r.meant(key.Value, t, path))
}

func (r reader) meant(key string, t reflect.Type, path string) string {
	if strings.Contains(key, ".") && printableKey.MatchString(key) {
		return "write each part as a key of its own, one below the other"
	}
	if kind, ok := r.names.kindWith(key); ok && t == reflect.TypeFor[Sink]() {
		return "a sink of type " + r.names.sink + " has none; remove it, or write type: " + kind
	}
	name, isType := strings.CutSuffix(key, "-observer")
	if path != "scheduler" || !isType {
		return instead(key, r.names.keysOf(t))
	}
	if near := nearest(name, r.names.types); near != "" {
		return "write " + near + "-observer"
	}
	return "no observer has this type: correct the name, or remove the section"
}

func quoteKey(key string) string {
	if printableKey.MatchString(key) {
		return `"` + key + `"`
	}
	return "(not shown)"
}

// lastKey is the last part of a dotted key, for messages.
func lastKey(path string) string {
	key, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	return key
}

// subject is what a message speaks of: a key, or an entry of a list.
func subject(path string) string {
	if strings.HasSuffix(path, "]") {
		return "an entry of " + lastKey(path)
	}
	return lastKey(path)
}
