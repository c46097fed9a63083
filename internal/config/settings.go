package config

import (
	"reflect"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/kind"
)

// checked is a section, or what a kind has in one, that knows what else can be wrong.
type checked interface{ Check(r field.Report) }

// complete reads what files hold and fills in their names, in sections of the settings
// too. Settings without a mistake are asked for others; ok is false when there is one.
func (r resolver) complete(path string, s kind.Settings) (ok bool) {
	found, holders := []checkedAt{{path, s}}, make(map[string]bool)
	names{}.walk(reflect.ValueOf(s).Elem(), path, func(p place) bool {
		if c, ok := p.value.Addr().Interface().(checked); ok {
			found = append(found, checkedAt{p.at, c})
		}
		switch {
		case p.shape() == scalar && isSecret(p.value.Type()):
			r.completeSecret(p)
			holders[p.at+"-file"] = p.file
		case holders[p.at]: // It was read; its name stays as it is written, for the hash.
		case p.shape() == scalar && p.tag.Get("unit") == "file name":
			r.completeName(p)
		}
		return true
	})
	if !r.whole(path) {
		return false
	}
	for _, c := range found {
		c.Check(sectionReport{r.Report, c.at})
	}
	return r.whole(path)
}

type checkedAt struct {
	at string
	checked
}

// whole reports whether there are no mistakes below a section.
func (r resolver) whole(path string) bool {
	for _, p := range r.Problems {
		if strings.HasPrefix(p.Key, path+".") {
			return false
		}
	}
	return true
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
	if why := setScalar(p, text); why != "" {
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
		p.value.SetString(r.fileName(p.at, name))
	}
}

// sectionReport is the report on a section, with its keys.
type sectionReport struct {
	*yamlfile.Report
	path string
}

// Reject notes a mistake at a key of the section.
func (r sectionReport) Reject(key, text string) { r.Report.Reject(join(r.path, key), text) }

// Warn notes a warning at a key of the section.
func (r sectionReport) Warn(key, text string) { r.Report.Warn(join(r.path, key), text) }
