package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/fn"
)

// Hash identifies what nodes of one cluster have in common: 12 hexadecimal
// digits that change with every key but those of node, http and log, and how a node
// connects to the coordination database: nodes that see each other share it, by
// whatever URL. Secrets are not part of it, so that it can be shown, nor is a URL that
// came from a file.
func (c *Config) Hash() string {
	all := flatten(c)
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		section, _, _ := strings.Cut(key, ".")
		above, isURL := strings.CutSuffix(key, ".url")
		file, _ := all[above+".url-file"].(string)
		own := slices.Contains([]string{"node", "http", "log"}, section) ||
			slices.Contains([]string{"database.url", "database.url-file", "database.pool-size"}, key)
		if own || isURL && file != "" {
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
	was, now := flatten(before), flatten(after)
	all := maps.Clone(was)
	maps.Copy(all, now)
	return outermost(fn.Only(slices.Sorted(maps.Keys(all)), func(key string) bool {
		before, had := was[key]
		after, has := now[key]
		return had != has || !reflect.DeepEqual(before, after)
	}))
}

// Settings are the settings of an observer as the configuration has them, presets
// included, in the order of the manual.
func (o Observer) Settings() []Setting {
	var all []Setting
	for _, p := range (names{}).keys(reflect.ValueOf(o), "") {
		if text := settingText(p.value); text != "" {
			all = append(all, Setting{p.key, text})
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
		texts := fn.Each(fn.Indexes(v.Len()), func(i int) string { return settingText(v.Index(i)) })
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

// flatten returns the values of a configuration by dotted key. What a name introduces has
// a key of its own, without a value.
func flatten(c *Config) map[string]any {
	all := make(map[string]any)
	names{byID: true}.walk(reflect.ValueOf(c).Elem(), "", func(p place) bool {
		switch shape := p.shape(); {
		case p.entry:
			all[p.at] = nil
			if o, ok := p.value.Interface().(Observer); ok {
				all[join(p.at, "redact-key-file.content")] = o.hashKey
			}
		case shape == scalar || shape == words || shape == pairs:
			all[p.at] = p.value.Interface()
			if t, ok := all[p.at].(field.Template); ok {
				all[p.at] = t.String()
			}
		}
		return true
	})
	return all
}
