package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// decode returns the typed value of the layered texts.
func (l *loader) decode() *Config {
	cfg := new(Config)
	l.section(reflect.ValueOf(cfg).Elem(), l.k.Raw(), "")
	return cfg
}

func (l *loader) section(v reflect.Value, values map[string]any, path string) {
	known := l.names
	if sink, ok := v.Addr().Interface().(*Sink); ok {
		kind, _ := values["type"].(string)
		sink.Settings = known.newSettings(kind)
		known = known.ofSink(cmp.Or(kind, "?")) // No kind has this name.
	}
	for _, f := range known.fieldsOf(v.Type()) {
		target, at := f.of(v), join(path, f.key)
		if f.entry != "" {
			l.typeSettings(target, f, values, at)
			continue
		}
		switch shapeOf(f.typ) {
		case section:
			l.section(target, asMap(values[f.key]), at)
		case table:
			l.table(target, asMap(values[f.key]), at)
		case list:
			l.list(target, values[f.key], at)
		default:
			l.leaf(target, f, values[f.key], at)
		}
	}
}

// typeSettings decodes the settings of one type: those for all types, with its
// own merged over them. Only the switch is not shared.
func (l *loader) typeSettings(m reflect.Value, f field, values map[string]any, path string) {
	shared := maps.Clone(asMap(values["observer"]))
	maps.Copy(shared, map[string]any{"enabled": "true"})
	settings := reflect.New(f.typ).Elem()
	quiet := l.apart()
	quiet.section(settings, merged(shared, asMap(values[f.key])), path)
	l.adopt(quiet.Report)
	setEntry(m, f.entry, settings)
}

// adopt takes over the mistakes of keys that were set; those that a type
// inherited are reported once, where they were made.
func (l *loader) adopt(from *yamlfile.Report) {
	for _, p := range from.Problems {
		if l.LayerOf(p.Key) != yamlfile.FromDefault {
			l.Reject(p.Key, p.Text)
		}
		l.MarkWrong(p.Key)
	}
}

func (l *loader) table(m reflect.Value, values map[string]any, path string) {
	m.Set(reflect.MakeMap(m.Type()))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t := m.Type().Elem()
		entry := reflect.New(t).Elem()
		l.section(entry, merged(l.names.defaults(t), asMap(values[name])), join(path, name))
		setEntry(m, name, entry)
	}
}

func setEntry(m reflect.Value, name string, entry reflect.Value) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(reflect.ValueOf(name), entry)
}

func (l *loader) list(s reflect.Value, value any, path string) {
	items, _ := value.([]any)
	t := s.Type().Elem()
	s.Set(reflect.MakeSlice(s.Type(), len(items), len(items)))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		given, ok := item.(map[string]any)
		if !ok || !l.OK(at) {
			l.MarkWrong(at)
			continue
		}
		kind, _ := given["type"].(string)
		l.section(s.Index(i), merged(l.names.ofSink(kind).defaults(t), given), at)
	}
}

// leaf decodes one text, or a list of them. A URL is decoded later, when it is resolved.
func (l *loader) leaf(v reflect.Value, f field, value any, path string) {
	if value == nil {
		if f.tag.Get("required") != "" && l.OK(path) {
			l.Reject(path, f.key+" is missing; write it")
		}
		return
	}
	if v.Type() == reflect.TypeFor[URL]() {
		return
	}
	if shapeOf(f.typ) == words {
		v.Set(reflect.ValueOf(asWords(value)))
		return
	}
	text, _ := value.(string)
	if why := setScalar(v, f, text); why != "" {
		l.Reject(path, why)
	}
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	if m == nil {
		m = make(map[string]any)
	}
	return m
}

func asWords(value any) []string {
	if text, ok := value.(string); ok {
		return []string{text}
	}
	items, _ := value.([]any)
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i], _ = item.(string)
	}
	return texts
}
