package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/kind"
)

// complete reads what files hold and fills in their names, in sections of the settings
// too. Settings without a mistake are asked for others; ok is false when there is one.
func (r resolver) complete(path string, s kind.Settings) (ok bool) {
	type checked interface{ Check(r field.Report) }
	found, holders := map[string]checked{path: s}, make(map[string]bool)
	var visit func(place) bool
	visit = func(p place) bool {
		if c, ok := p.value.Addr().Interface().(checked); ok {
			found[p.at] = c
		}
		switch {
		case p.shape() == scalar && isSecret(p.value.Type()):
			r.completeSecret(p)
			holders[p.at+"-file"] = p.file
		case holders[p.at]: // It was read; its name stays as it is written, for the hash.
		case p.shape() == scalar && p.tag.Get("unit") == "file name":
			r.completeName(p)
		}
		names{}.walk(p.value, p.at, visit)
		p.store()
		return false
	}
	names{}.walk(reflect.ValueOf(s).Elem(), path, visit)
	if !r.whole(path) {
		return false
	}
	for at, c := range found {
		c.Check(sectionReport{r.Report, at})
	}
	return r.whole(path)
}

// whole reports whether there are no mistakes below a section.
func (r resolver) whole(path string) bool {
	return !slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.HasPrefix(p.Key, path+".") })
}

func (r resolver) completeSecret(p place) {
	otherwise := ""
	if p.file {
		otherwise = p.key + "-file"
	}
	text, at, ok := r.secret(p.at, p.unit(), otherwise)
	if !ok || at == "" {
		return
	}
	why := setScalar(p, text)
	if why == "" && text == "" && p.tag.Get("required") != "" {
		why = p.key + " is empty; write it"
	}
	if why != "" {
		r.Reject(at, why)
	}
}

func (r resolver) completeName(p place) {
	name := p.value.String()
	switch holds := p.tag.Get("holds"); {
	case !r.OK(p.at):
	case name == "" && r.IsSet(p.at):
		r.Reject(p.at, p.key+" is empty; write the name of a file")
	case name != "" && holds != "":
		r.fromFile(p.at, name, holds)
		fallthrough
	default:
		if name = r.fileName(p.at, name); strings.Contains(name, "://") {
			r.Reject(p.at, "this is a URL; write the name of a file")
		}
		p.value.SetString(name)
	}
}

// sectionReport is the report on a section, with its keys.
type sectionReport struct {
	all  *yamlfile.Report
	path string
}

// Reject is of [field.Report].
func (r sectionReport) Reject(key, text string) { r.all.Reject(join(r.path, key), text) }

// Warn is of [field.Report].
func (r sectionReport) Warn(key, text string) { r.all.Warn(join(r.path, key), text) }
