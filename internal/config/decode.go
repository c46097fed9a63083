package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// decoder makes the typed values of the layered texts.
type decoder struct {
	*yamlfile.Report
	names names
}

func (d decoder) section(v reflect.Value, values map[string]any, path string) {
	known := d.names
	if sink, ok := v.Addr().Interface().(*Sink); ok {
		kind := known.typeIn(values["type"])
		sink.Settings = known.newSettings(kind)
		known = known.ofSink(cmp.Or(kind, "?")) // No kind has this name.
	}
	for _, f := range known.fieldsOf(v.Type()) {
		target, at := f.of(v), join(path, f.key)
		if f.entry != "" {
			d.typeSettings(target, f, values, at)
			continue
		}
		switch shapeOf(f.typ) {
		case section:
			d.section(target, asMap(values[f.key]), at)
		case table:
			d.table(target, asMap(values[f.key]), at)
		case list:
			d.list(target, values[f.key], at)
		default:
			d.leaf(target, f, values[f.key], at)
		}
	}
}

// typeSettings decodes the settings of one type: those for all types, with its
// own merged over them. Only the switch is not shared.
func (d decoder) typeSettings(m reflect.Value, f field, values map[string]any, path string) {
	shared := maps.Clone(asMap(values["observer"]))
	maps.Copy(shared, map[string]any{"enabled": "true"})
	settings := reflect.New(f.typ).Elem()
	quiet := decoder{d.Apart(), d.names}
	quiet.section(settings, merged(shared, asMap(values[f.key])), path)
	d.adopt(quiet.Report)
	setEntry(m, f.entry, settings)
}

// adopt takes over the mistakes of keys that were set; those that a type
// inherited are reported once, where they were made.
func (d decoder) adopt(from *yamlfile.Report) {
	for _, p := range from.Problems {
		if d.IsSet(p.Key) {
			d.Reject(p.Key, p.Text)
		}
		d.MarkWrong(p.Key)
	}
}

func (d decoder) table(m reflect.Value, values map[string]any, path string) {
	m.Set(reflect.MakeMap(m.Type()))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t := m.Type().Elem()
		entry := reflect.New(t).Elem()
		d.section(entry, merged(d.names.defaults(t), asMap(values[name])), join(path, name))
		setEntry(m, name, entry)
	}
}

func setEntry(m reflect.Value, name string, entry reflect.Value) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(reflect.ValueOf(name), entry)
}

func (d decoder) list(s reflect.Value, value any, path string) {
	items, _ := value.([]any)
	t := s.Type().Elem()
	s.Set(reflect.MakeSlice(s.Type(), len(items), len(items)))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		given, ok := item.(map[string]any)
		if !ok || !d.OK(at) {
			d.MarkWrong(at)
			continue
		}
		kind := d.names.typeIn(given["type"])
		d.section(s.Index(i), merged(d.names.ofSink(kind).defaults(t), given), at)
	}
}

// leaf decodes one text, or a list of them. A URL is decoded later, when it is resolved.
func (d decoder) leaf(v reflect.Value, f field, value any, path string) {
	if value == nil {
		if f.tag.Get("required") != "" && d.OK(path) {
			d.Reject(path, f.key+" is missing; write it")
		}
		return
	}
	if v.Type() == reflect.TypeFor[URL]() {
		return
	}
	switch shapeOf(f.typ) {
	case words:
		v.Set(reflect.ValueOf(d.words(f, value, path)))
		return
	case pairs:
		d.pairs(v, f, asWords(value), path)
		return
	}
	written, _ := value.(string)
	text, ok := d.expanded(path, f, written)
	if !ok {
		return
	}
	if why := setScalar(v, f, text); why != "" {
		d.Reject(path, why)
	}
}

func (d decoder) words(f field, value any, path string) []string {
	if written, ok := value.(string); ok {
		text, ok := d.expanded(path, f, written)
		if first := path + "[0]"; ok {
			d.hide(first, written, text)
		} else {
			d.MarkWrong(first)
		}
		return []string{text}
	}
	texts := asWords(value)
	for i, written := range texts {
		var ok bool
		if texts[i], ok = d.expanded(fmt.Sprintf("%s[%d]", path, i), f, written); !ok {
			d.MarkWrong(path)
		}
	}
	return texts
}

// pairs decodes names and texts, in turns.
func (d decoder) pairs(m reflect.Value, f field, values []string, path string) {
	f.key = "way to redact a column"
	for i := 0; i+1 < len(values); i += 2 {
		at := join(path, values[i])
		text, ok := d.expanded(at, f, values[i+1])
		if !ok {
			d.MarkWrong(path)
			continue
		}
		value, why := word(text, f)
		if why != "" {
			d.Reject(at, why)
			d.MarkWrong(path)
		}
		setEntry(m, values[i], reflect.ValueOf(value))
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
	items, _ := value.([]any)
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i], _ = item.(string)
	}
	return texts
}
