package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Hash identifies what nodes of one cluster have in common: 12 hexadecimal
// digits that change with every key but those of node, http and log, which differ
// by node. Secrets are not part of it, so that it can be shown, nor is a URL that
// came from a file.
func (c *Config) Hash() string {
	all := make(flat)
	all.section(reflect.ValueOf(c).Elem(), "")
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		section, _, _ := strings.Cut(key, ".")
		above, isURL := strings.CutSuffix(key, ".url")
		file, _ := all[above+".url-file"].(string)
		if slices.Contains([]string{"node", "http", "log"}, section) || isURL && file != "" {
			continue
		}
		fmt.Fprintf(hash, "%s=%#v\n", key, reflect.Indirect(reflect.ValueOf(all[key])))
	}
	return hex.EncodeToString(hash.Sum(nil)[:6])
}

// Changed returns the dotted keys in which two configurations differ, sorted,
// for messages about a reload; secrets count, and no value is part of it.
// Entries of lists go by their id, as in observers.erp-orders.table. Of a source,
// observer or sink that only one of the two has there is the name alone.
func Changed(before, after *Config) []string {
	was, now := make(flat), make(flat)
	was.section(reflect.ValueOf(before).Elem(), "")
	now.section(reflect.ValueOf(after).Elem(), "")
	var keys []string
	for key, value := range was {
		if other, ok := now[key]; !ok || !reflect.DeepEqual(value, other) {
			keys = append(keys, key)
		}
	}
	for key := range now {
		if _, ok := was[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return outermost(keys)
}

// Settings are the settings of an observer as the configuration has them, presets
// included, in the order of the manual.
func (o Observer) Settings() []Setting {
	var all []Setting
	for _, entry := range entriesOf(reflect.ValueOf(o)) {
		if text := settingText(entry.value); text != "" {
			all = append(all, Setting{entry.key, text})
		}
	}
	return all
}

// Setting is a key of the configuration, and its value as text.
type Setting struct{ Key, Value string }

func settingText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return settingText(v.Elem())
	case reflect.Slice:
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = settingText(v.Index(i))
		}
		return strings.Join(texts, ", ")
	case reflect.Map:
		texts := make([]string, 0, v.Len())
		for name, value := range v.Seq2() {
			texts = append(texts, name.String()+": "+settingText(value))
		}
		slices.Sort(texts)
		return strings.Join(texts, ", ")
	}
	return fmt.Sprint(v.Interface())
}

// outermost leaves out what lies below another of the sorted keys.
func outermost(keys []string) []string {
	var kept []string
	for _, key := range keys {
		within := func(outer string) bool { return strings.HasPrefix(key, outer+".") }
		if !slices.ContainsFunc(kept, within) {
			kept = append(kept, key)
		}
	}
	return kept
}

// flat has the values of a configuration by dotted key. What a name introduces
// has a key of its own, without a value.
type flat map[string]any

func (f flat) section(v reflect.Value, path string) {
	for _, entry := range entriesOf(v) {
		at := join(path, entry.key)
		if entry.entry != "" {
			f[at] = nil
		}
		f.value(entry, at)
	}
}

func (f flat) value(entry setting, at string) {
	switch shapeOf(entry.typ) {
	case section:
		f.section(entry.value, at)
	case table:
		for _, name := range sortedKeys(entry.value) {
			f.named(entry.value.MapIndex(reflect.ValueOf(name)), join(at, name))
		}
	case list:
		for i := range entry.value.Len() {
			item := entry.value.Index(i)
			f.named(item, join(at, item.FieldByName("ID").String()))
		}
	default:
		f[at] = entry.value.Interface()
	}
}

func (f flat) named(v reflect.Value, at string) {
	f[at] = nil
	f.section(v, at)
	if o, ok := v.Interface().(Observer); ok {
		f[join(at, "redact-key-file.content")] = o.hashKey
	}
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

func sortedKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, key := range m.MapKeys() {
		keys = append(keys, key.String())
	}
	return slices.Sorted(slices.Values(keys))
}
