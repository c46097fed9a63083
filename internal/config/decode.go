package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/observerd/observerd/internal/config/field"
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
	family := d.names.familyOf(p.value)
	family.choose(d.names.typeIn(d.texts[p.at+".type"]))
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

// leaf decodes one text, or several. A secret that may be in a file is read later: see
// [resolver].
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
		if p.tag.Get("required") != "" && d.OK(p.at, p.at+"-file") && (!p.file || d.texts[p.at+"-file"] == nil) {
			d.Reject(p.at, p.key+" is missing; set it")
		}
		return
	}
	switch p.shape() {
	case words:
		d.words(p, value)
	case pairs:
		d.pairs(p, asWords(value))
	default:
		if written, _ := value.(string); !isSecret(p.value.Type()) {
			d.text(p, written)
		}
	}
}

// text sets the value of a place from what is written there.
func (d decoder) text(p place, written string) (ok bool) {
	text, ok := d.expanded(p, written)
	if !ok {
		return false
	}
	why := setScalar(p, text)
	if _, ok := p.value.Interface().(field.Template); ok && why != "" && text != written {
		why = "with the values of its variables this is invalid; replace the variables with their values to see why" // It may repeat them.
	}
	if why != "" {
		d.Reject(p.at, why)
	}
	return why == ""
}

// words decodes a list of texts, or one.
func (d decoder) words(p place, value any) {
	texts := asWords(value)
	written, single := value.(string)
	if single {
		texts = []string{written}
	}
	p.value.Set(reflect.MakeSlice(p.value.Type(), len(texts), len(texts)))
	for i, written := range texts {
		item, first := p, fmt.Sprintf("%s[%d]", p.at, i)
		item.value, item.entry = p.value.Index(i), true
		if !single {
			item.at = first
		}
		switch ok := d.text(item, written); {
		case !ok && single:
			d.MarkWrong(first)
		case !ok:
			d.MarkWrong(p.at)
		case single:
			d.hide(first, written, item.value.String())
		}
	}
}

// pairs decodes names and texts, in turns.
func (d decoder) pairs(p place, values []string) {
	m := p.value
	m.Set(reflect.MakeMap(m.Type()))
	for i := 0; i+1 < len(values); i += 2 {
		entry := place{key: cmp.Or(p.tag.Get("entry"), p.key), at: join(p.at, values[i]), tag: p.tag, value: reflect.New(m.Type().Elem()).Elem(), entry: true}
		if !d.text(entry, values[i+1]) {
			d.MarkWrong(p.at)
		}
		m.SetMapIndex(reflect.ValueOf(values[i]), entry.value)
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
