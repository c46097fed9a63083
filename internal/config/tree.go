package config

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// reader holds YAML nodes against the schema. It returns nested maps of texts
// and writes down where each was.
type reader struct {
	*ledger
	names names
}

// section reads a mapping with known keys.
func (r reader) section(n *yaml.Node, t reflect.Type, path string) map[string]any {
	if t == reflect.TypeFor[Sink]() {
		if kind := child(n, "type").Value; r.names.newSettings(kind) != nil {
			r.names.sink = kind
		}
	}
	known := make(map[string]field)
	for _, f := range r.names.fieldsOf(t) {
		known[f.key] = f
	}
	values := make(map[string]any)
	r.entries(n, path, func(key, value *yaml.Node) {
		f, ok := known[key.Value]
		if !ok {
			r.unknown(key, t, path)
			return
		}
		at := join(path, f.key)
		r.origins[at] = position(key)
		if v := r.value(value, f.typ, at); v != nil {
			values[f.key] = v
		}
	})
	return values
}

// table reads a mapping of names to sections.
func (r reader) table(n *yaml.Node, t reflect.Type, path string) map[string]any {
	values := make(map[string]any)
	r.entries(n, path, func(key, value *yaml.Node) {
		if why := badName(key.Value); why != "" {
			r.rejectAt(position(key), path, why)
			r.wrong[join(path, key.Value)] = true
			return
		}
		at := join(path, key.Value)
		r.origins[at] = position(key)
		if isNull(value) {
			values[key.Value] = make(map[string]any)
		} else if v := r.value(value, t, at); v != nil {
			values[key.Value] = v
		}
	})
	return values
}

// entries visits the keys of a mapping, each once.
func (r reader) entries(n *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	seen := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Value == "<<":
			r.rejectAt(position(key), path, "this is not a plain key; write a name, without anchors, aliases and merges")
			r.wrong[path] = true // What a merge would have brought is not missing.
		case first != nil:
			r.rejectAt(position(key), path, fmt.Sprintf("the key %s is there already, at %s; remove one of them",
				quoteKey(key.Value), r.problem(position(first), "", "").where()))
		default:
			seen[key.Value] = key
			visit(key, value)
		}
	}
}

// value reads what belongs to a key; nil means nothing that can be used.
func (r reader) value(n *yaml.Node, t reflect.Type, path string) any {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		r.origins[path] = position(n)
		r.reject(path, "anchors, aliases and tags are not read here; write the value out, and quote one that begins with *, & or !")
		return nil
	}
	switch shapeOf(t) {
	case section:
		if r.is(n, yaml.MappingNode, path, "a section; write its keys below it") {
			return r.section(n, t, path)
		}
	case table:
		if r.is(n, yaml.MappingNode, path, "a section; write names below it, each with its keys") {
			return r.table(n, t.Elem(), path)
		}
	case list:
		if r.is(n, yaml.SequenceNode, path, `a list; begin each entry with "- "`) {
			return r.list(n, t.Elem(), path)
		}
	case words:
		if n.Kind == yaml.SequenceNode {
			return r.words(n, path)
		}
		return r.text(n, path, "one name or a list of names")
	default:
		return r.text(n, path, "one text, number or switch")
	}
	return nil
}

// is checks a node's kind. A section without a value is one without keys.
func (r reader) is(n *yaml.Node, kind yaml.Kind, path, want string) bool {
	if n.Kind != kind && !isNull(n) {
		r.origins[path] = position(n)
		r.reject(path, subject(path)+" is "+want)
	}
	return n.Kind == kind
}

func (r reader) list(n *yaml.Node, t reflect.Type, path string) []any {
	var values []any
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.origins[at] = position(item)
		if isNull(item) {
			r.reject(at, "this entry is empty; write its keys, or remove it")
		}
		values = append(values, r.value(item, t, at))
	}
	return values
}

func (r reader) words(n *yaml.Node, path string) any {
	r.origins[path] = position(n)
	values := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		if v := r.text(item, at, "one name"); v != nil {
			values = append(values, v)
		} else {
			r.wrong[path] = true
		}
	}
	return values
}

func (r reader) text(n *yaml.Node, path, want string) any {
	r.origins[path] = position(n)
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "":
		r.reject(path, subject(path)+" is "+want+"; write it without keys or brackets below it")
	case isNull(n):
		r.reject(path, subject(path)+" has no value; write one, or remove it")
	default:
		return n.Value
	}
	return nil
}
