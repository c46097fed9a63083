package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// unknown reports a key with what was probably meant. The key is repeated only
// if it looks like one.
func (r reader) unknown(key *yaml.Node, t reflect.Type, path string) {
	r.RejectAt(yamlfile.Position(key), path, "unknown key "+yamlfile.QuoteKey(key.Value)+"; "+r.meant(key.Value, t, path))
}

func (r reader) meant(key string, t reflect.Type, path string) string {
	if strings.Contains(key, ".") && yamlfile.IsPrintable(key) {
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
