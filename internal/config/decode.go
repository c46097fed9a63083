package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// decoder makes the typed values of the layered texts.
type decoder struct {
	*yamlfile.Report
	names names
	cfg   *Config
	// texts are what the layers say, by dotted key.
	texts map[string]any
}

// note notes a value and all that is below it by dotted key.
func note(texts map[string]any, path string, value any) {
	texts[path] = value
	switch below := value.(type) {
	case map[string]any:
		for key, inner := range below {
			note(texts, join(path, key), inner)
		}
	case []any:
		for i, inner := range below {
			note(texts, fmt.Sprintf("%s[%d]", path, i), inner)
		}
	}
}

// decode sets the value of a place, and whether there is something below it.
func (d decoder) decode(p place) bool {
	value := d.texts[p.at]
	switch p.shape() {
	case section:
		return d.section(p)
	case table:
		entries, _ := value.(map[string]any)
		p.value.Set(reflect.MakeMap(p.value.Type()))
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			p.value.SetMapIndex(reflect.ValueOf(name), reflect.Zero(p.value.Type().Elem()))
		}
		return true
	case list:
		items, _ := value.([]any)
		p.value.Set(reflect.MakeSlice(p.value.Type(), len(items), len(items)))
		return true
	}
	d.leaf(p, value)
	return false
}

func (d decoder) section(p place) bool {
	if _, ok := d.texts[p.at].(map[string]any); p.entry && !p.table.IsValid() && (!ok || !d.OK(p.at)) {
		d.MarkWrong(p.at) // An entry of a list that is no section.
		return false
	}
	if sink, ok := p.value.Addr().Interface().(*Sink); ok {
		sink.Settings = d.names.newSettings(d.names.typeIn(d.texts[p.at+".type"]))
	}
	if settings, ok := p.value.Addr().Interface().(*Settings); ok && p.entry {
		*settings = d.cfg.Scheduler.Settings
		settings.Enabled = true // Only the switch is not shared.
	}
	d.names.walk(p.value, p.at, d.decode)
	p.store()
	return false
}

// ofType is a key of one type, which takes what it lacks from those for all types.
var ofType = regexp.MustCompile(`^scheduler\.[a-z0-9-]+-observer\.`)

// leaf decodes one text, or a list of them. A URL is decoded later, when it is resolved.
func (d decoder) leaf(p place, value any) {
	if shared := ofType.ReplaceAllString(p.at, "scheduler.observer."); value == nil && shared != p.at {
		if !d.OK(shared) {
			d.MarkWrong(p.at)
		}
		return
	}
	if preset, ok := p.tag.Lookup("default"); ok && value == nil {
		value = preset
		d.texts[p.at] = preset
	}
	if value == nil {
		if p.tag.Get("required") != "" && d.OK(p.at) {
			d.Reject(p.at, p.key+" is missing; write it")
		}
		return
	}
	if p.value.Type() == reflect.TypeFor[URL]() {
		return
	}
	switch p.shape() {
	case words:
		p.value.Set(reflect.ValueOf(d.words(p, value)))
		return
	case pairs:
		d.pairs(p, asWords(value))
		return
	}
	written, _ := value.(string)
	text, ok := d.expanded(p, written)
	if !ok {
		return
	}
	if why := setScalar(p, text); why != "" {
		d.Reject(p.at, why)
	}
}

func (d decoder) words(p place, value any) []string {
	if written, ok := value.(string); ok {
		text, ok := d.expanded(p, written)
		if first := p.at + "[0]"; ok {
			d.hide(first, written, text)
		} else {
			d.MarkWrong(first)
		}
		return []string{text}
	}
	texts, path := asWords(value), p.at
	for i, written := range texts {
		var ok bool
		p.at = fmt.Sprintf("%s[%d]", path, i)
		if texts[i], ok = d.expanded(p, written); !ok {
			d.MarkWrong(path)
		}
	}
	return texts
}

// pairs decodes names and texts, in turns.
func (d decoder) pairs(p place, values []string) {
	m, path := p.value, p.at
	m.Set(reflect.MakeMap(m.Type()))
	p.key = "way to redact a column"
	for i := 0; i+1 < len(values); i += 2 {
		p.at = join(path, values[i])
		text, ok := d.expanded(p, values[i+1])
		if !ok {
			d.MarkWrong(path)
			continue
		}
		value, why := word(text, p)
		if why != "" {
			d.Reject(p.at, why)
			d.MarkWrong(path)
		}
		m.SetMapIndex(reflect.ValueOf(values[i]), reflect.ValueOf(value))
	}
}

func asWords(value any) []string {
	items, _ := value.([]any)
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i], _ = item.(string)
	}
	return texts
}
