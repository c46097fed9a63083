package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// String is the effective configuration as YAML, in the order of the manual
// and without secrets. Load accepts it, but for the passwords.
func (c *Config) String() string {
	text, err := yaml.Marshal(sectionNode(reflect.ValueOf(c).Elem()))
	if err != nil {
		return "configuration cannot be printed: " + err.Error()
	}
	return string(text)
}

// Redacted is the effective configuration without secrets, by the keys of the
// file, for a printer of YAML or JSON.
func (c *Config) Redacted() map[string]any {
	values := make(map[string]any)
	// The node was made here, of maps with text keys: it always decodes.
	_ = sectionNode(reflect.ValueOf(c).Elem()).Decode(&values)
	return values
}

// MarshalJSON prints without secrets.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.Redacted()) }

// Hash identifies what nodes of one cluster have in common: 12 hexadecimal
// digits that change with every key but those of node, http and log, which differ
// by node. Secrets are not part of it, so that it can be shown.
func (c *Config) Hash() string {
	values := c.Redacted()
	for _, own := range []string{"node", "http", "log"} {
		delete(values, own)
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic("config: hash: " + err.Error()) // Texts, numbers and bools always marshal.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// sectionNode writes the keys that have a value. A URL that came from a file
// is left to the file.
func sectionNode(v reflect.Value) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	fromFile := v.FieldByName("URLFile")
	for _, f := range entriesOf(v) {
		isURL := f.typ == reflect.TypeFor[URL]()
		if isURL && fromFile.IsValid() && fromFile.String() != "" {
			continue
		}
		if child := valueNode(f.value, f.field); child != nil {
			node.Content = append(node.Content, textNode(f.key), child)
		}
	}
	return node
}

// setting is a key with its value.
type setting struct {
	field
	value reflect.Value
}

func entriesOf(v reflect.Value) []setting {
	var entries []setting
	for _, f := range namesIn(v).fieldsOf(v.Type()) {
		value := f.of(v)
		if f.entry == "" {
			entries = append(entries, setting{f, value})
			continue
		}
		for _, name := range sortedKeys(value) {
			f.key = name + "-observer"
			entries = append(entries, setting{f, value.MapIndex(reflect.ValueOf(name))})
		}
	}
	return entries
}

// namesIn are the names for a section that has its values.
func namesIn(v reflect.Value) names {
	n := names{types: []string{"<type>"}}
	if sink, ok := v.Interface().(Sink); ok && sink.Settings != nil {
		n.sinks = []SinkKind{{Name: sink.Type, Settings: func() SinkSettings { return sink.Settings }}}
	}
	return n
}

func valueNode(v reflect.Value, f field) *yaml.Node {
	switch shapeOf(f.typ) {
	case section:
		return sectionNode(v)
	case table:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range sortedKeys(v) {
			node.Content = append(node.Content, textNode(name), sectionNode(v.MapIndex(reflect.ValueOf(name))))
		}
		return node
	case list:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			node.Content = append(node.Content, sectionNode(v.Index(i)))
		}
		return node
	}
	_, hasDefault := f.tag.Lookup("default")
	if v.IsZero() && !hasDefault {
		return nil // It was not set.
	}
	return scalarNode(v.Interface())
}

func scalarNode(value any) *yaml.Node {
	switch v := value.(type) {
	case *time.Duration:
		value = short(*v)
	case time.Duration:
		value = short(v)
	case fmt.Stringer:
		value = v.String()
	}
	node := new(yaml.Node)
	if err := node.Encode(value); err != nil {
		return textNode("cannot be printed")
	}
	if node.Kind == yaml.SequenceNode {
		node.Style = yaml.FlowStyle
	}
	return node
}

func textNode(text string) *yaml.Node {
	node := new(yaml.Node)
	node.SetString(text)
	return node
}

func sortedKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, key := range m.MapKeys() {
		keys = append(keys, key.String())
	}
	return slices.Sorted(slices.Values(keys))
}
