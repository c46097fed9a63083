package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/nearest"
)

// reader checks YAML nodes against the schema. It returns nested maps of texts
// and notes where each was.
type reader struct {
	*yamlfile.Report
	names names
	// lists are the entries of each list so far, from all files.
	lists map[string][]any
}

// section reads a mapping with known keys.
func (r reader) section(n *yaml.Node, t reflect.Type, path string) map[string]any {
	if t == reflect.TypeFor[Sink]() {
		if kind := r.names.typeIn(yamlfile.Child(n, "type").Value); r.names.newSettings(kind) != nil {
			r.names.sink = kind
		}
	}
	known := make(map[string]field)
	for _, f := range r.names.fieldsOf(t) {
		known[f.key] = f
	}
	values := make(map[string]any)
	r.Entries(n, path, func(key, value *yaml.Node) {
		f, ok := known[key.Value]
		if !ok {
			r.unknown(key, t, path)
			return
		}
		at := join(path, f.key)
		if shape := shapeOf(f.typ); (shape == scalar || shape == words) && r.IsTwice(key, at) {
			return
		}
		r.SetOrigin(at, yamlfile.Position(key))
		if v := r.value(value, f.typ, at); v != nil {
			values[f.key] = v
		}
	})
	return values
}

// table reads a mapping of names to sections.
func (r reader) table(n *yaml.Node, t reflect.Type, path string) map[string]any {
	values := make(map[string]any)
	r.Entries(n, path, func(key, value *yaml.Node) {
		if why := badName(key.Value); why != "" {
			r.RejectAt(yamlfile.Position(key), path, why)
			r.MarkWrong(join(path, key.Value))
			return
		}
		at := join(path, key.Value)
		if r.IsTwice(key, at) {
			return
		}
		r.SetOrigin(at, yamlfile.Position(key))
		if yamlfile.IsNull(value) {
			values[key.Value] = make(map[string]any)
		} else if v := r.value(value, t, at); v != nil {
			values[key.Value] = v
		}
	})
	return values
}

// pairs returns the names and texts of a mapping, in turns: a name may hold a point, at
// which the keys of layers are cut.
func (r reader) pairs(n *yaml.Node, path string) []any {
	values := []any{}
	r.Entries(n, path, func(key, value *yaml.Node) {
		at := join(path, key.Value)
		if r.IsPlain(value, at) {
			if text := r.Text(value, at, "one text"); text != nil {
				values = append(values, key.Value, text)
				return
			}
		}
		r.MarkWrong(path)
	})
	return values
}

// value reads what belongs to a key; nil means nothing that can be used.
func (r reader) value(n *yaml.Node, t reflect.Type, path string) any {
	if !r.IsPlain(n, path) {
		return nil
	}
	switch shapeOf(t) {
	case section:
		if r.Is(n, yaml.MappingNode, path, "a section; write its keys below it") {
			return r.section(n, t, path)
		}
	case table:
		if r.Is(n, yaml.MappingNode, path, "a section; write names below it, each with its keys") {
			return r.table(n, t.Elem(), path)
		}
	case list:
		if r.Is(n, yaml.SequenceNode, path, `a list; begin each entry with "- "`) {
			return r.list(n, t.Elem(), path)
		}
	case pairs:
		if r.Is(n, yaml.MappingNode, path, "a section; write names below it, each with one text") {
			return r.pairs(n, path)
		}
	case words:
		if n.Kind == yaml.SequenceNode {
			return r.Texts(n, path, entry(path))
		}
		return r.Text(n, path, "one name or a list of names")
	default:
		return r.Text(n, path, "one text, number or switch")
	}
	return nil
}

// entry is what a list of texts consists of, for messages.
func entry(path string) string {
	if path == "locks.hierarchies" {
		return "one text, such as fileset > document"
	}
	return "one name"
}

func (r reader) list(n *yaml.Node, t reflect.Type, path string) []any {
	values := r.lists[path]
	for _, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, len(values))
		r.SetOrigin(at, yamlfile.Position(item))
		if yamlfile.IsNull(item) {
			r.Reject(at, "this entry is empty; write its keys, or remove it")
		}
		values = append(values, r.value(item, t, at))
	}
	r.lists[path] = values
	return values
}

// unknown rejects a key, and suggests another. The key is repeated only if it looks
// like one.
func (r reader) unknown(key *yaml.Node, t reflect.Type, path string) {
	r.RejectAt(yamlfile.Position(key), path, "unknown key "+yamlfile.QuoteKey(key.Value)+"; "+r.suggest(key.Value, t, path))
}

func (r reader) suggest(key string, t reflect.Type, path string) string {
	if strings.Contains(key, ".") && yamlfile.IsPrintable(key) {
		return "write each part as a key of its own, one below the other"
	}
	if kind, ok := r.names.kindWith(key); ok && t == reflect.TypeFor[Sink]() {
		return "a sink of type " + r.names.sink + " has none; remove it, or write type: " + kind
	}
	name, isType := strings.CutSuffix(key, "-observer")
	if path != "scheduler" || !isType {
		return nearest.Suggest(key, r.names.keysOf(t))
	}
	if near := nearest.Name(name, r.names.types); near != "" {
		return "write " + near + "-observer"
	}
	return "no observer has this type: correct the name, or remove the section"
}

// scanNames finds the names that the files introduce, before they are checked
// against the keys that follow from them. Mistakes are skipped here: reading the tree
// reports them.
func scanNames(files []file, environ variables) names {
	n := names{types: builtinNames(), variables: environ}
	for _, f := range files {
		n.scan(f.root)
	}
	n.types, n.sources = unique(n.types), unique(n.sources)
	return n
}

func (n *names) scan(root *yaml.Node) {
	for _, item := range yamlfile.Child(root, "observers").Content {
		if name := n.typeIn(yamlfile.Child(item, "type").Value); badName(name) == "" {
			n.types = append(n.types, name)
		}
	}
	sources := yamlfile.Child(root, "sources")
	for i := 0; i+1 < len(sources.Content); i += 2 {
		if name := sources.Content[i].Value; badName(name) == "" {
			n.sources = append(n.sources, name)
		}
	}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
