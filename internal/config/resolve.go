package config

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// resolver finds the values that are in variables, and in files that keys name.
type resolver struct {
	*yamlfile.Report
	options Options
	// texts are what the layers say, by dotted key.
	texts map[string]any
}

func (r resolver) text(key string) string {
	text, _ := r.texts[key].(string)
	return text
}

// secret returns the text of a key, or that of the file which KEY-file names, whichever was
// set in the higher layer, and the key that was. Setting both in one layer is a mistake.
// otherwise is what can be written in the place of a variable. Without either the text and
// at are empty.
func (r resolver) secret(key, what, otherwise string) (text, at string, ok bool) {
	file := key + "-file"
	byText, byFile := r.texts[key] != nil, r.texts[file] != nil
	switch {
	case !r.OK(key, file):
		return "", "", false
	case byText && byFile && r.LayerOf(key) == r.LayerOf(file):
		r.Reject(file, yamlfile.LastKey(key)+" is set as well; remove one of them")
		return "", "", false
	case byFile && (!byText || r.LayerOf(file) > r.LayerOf(key)):
		text, at = r.fromFile(file, r.text(file), what), file
	case byText:
		text, at = r.expand(key, r.text(key), otherwise), key
	default:
		return "", "", true
	}
	return text, at, r.OK(at)
}

// resolveURL makes the URL of a section from its url or url-file, and returns the key that
// gave it.
func (r resolver) resolveURL(path string, parse func(string) (URL, error)) (u URL, at string, ok bool) {
	text, at, ok := r.secret(join(path, "url"), "URL", "url-file")
	switch {
	case !ok:
		return URL{}, "", false
	case at == "":
		r.Reject(path, "url is missing; set url or url-file")
		return URL{}, "", false
	}
	u, err := parse(text)
	if err != nil {
		r.Reject(at, err.Error())
	}
	return u, at, err == nil
}

// fromFile reads a URL or another secret from its file, whose name is written at the
// key. The name is not repeated: it may be the secret itself, in the wrong place.
func (r resolver) fromFile(key, written, what string) string {
	name := r.fileName(key, written)
	if !r.OK(key) {
		return ""
	}
	if strings.Contains(name, "://") || strings.HasPrefix(name, "sqlite:") {
		r.Reject(key, "this is a URL; set it at url, or give the name of a file that holds "+cmp.Or(map[string]string{"URL": "it"}[what], "the "+what))
		return ""
	}
	text, info, why := yamlfile.Read(name)
	if why != nil {
		why.Text = key + ": " + why.Text
		r.RejectFile(key, *why)
		return ""
	}
	content := strings.TrimRight(string(text), "\r\n")
	switch {
	case content == "":
		r.Reject(key, "the file is empty; write the "+what+" into it")
	case what != "URL" && what != "certificate" || dburl.HoldsPassword(content):
		r.options.warnOfReaders(r.Report, key, name, info)
	}
	return content
}

// sourceURL makes the URL of a source. A file that cannot be read stops that source
// alone: it is a warning, and again reads the file later. The URL is then zero, or
// lacks the password.
func (r resolver) sourceURL(path string) (u URL, again func() (URL, error)) {
	first := resolver{r.Apart(), r.options, r.texts}
	u, _ = first.resolveSource(path)
	r.Warnings = append(r.Warnings, first.Warnings...)
	if len(first.Problems) == 0 || !errors.Is(&Error{Problems: first.Problems}, ErrUnread) {
		r.Adopt(first.Report)
		return u, nil
	}
	for _, p := range first.Problems {
		p.Text += "; until then the observers of this source fail"
		r.Warnings = append(r.Warnings, p)
	}
	return u, func() (URL, error) {
		now := resolver{r.Apart(), r.options, r.texts}
		if u, ok := now.resolveSource(path); ok {
			return u, nil
		}
		return URL{}, &Error{Problems: now.Problems}
	}
}

// resolveSource makes the URL of a source from its keys and the files that they name.
func (r resolver) resolveSource(path string) (URL, bool) {
	u, at, ok := r.resolveURL(path, r.options.Kinds.Servers.ParseURL)
	if !ok {
		return URL{}, false
	}
	r.checkFileSystem(at, u)
	u, known := r.resolvePassword(path, at, u)
	return u, known && r.OK(at)
}

// resolvePassword puts the password of its file into the URL of a source, which is that of
// the key.
func (r resolver) resolvePassword(path, urlKey string, u URL) (URL, bool) {
	key := join(path, "password-file")
	switch {
	case !r.IsSet(key) || !r.OK(key):
		return u, r.OK(key)
	case u.Dialect() == SQLite:
		r.Reject(key, "an SQLite file has no password; remove it")
		return u, false
	}
	password := r.fromFile(key, r.text(key), "password")
	if !r.OK(key) {
		password = "" // It is shown, and hashed, as with one.
	}
	with, err := r.options.Kinds.Servers.WithPassword(u, password)
	if err != nil {
		r.Reject(urlKey, err.Error())
		return u, false
	}
	return with, r.OK(key)
}

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
		why = p.key + " is empty; set it"
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
		r.Reject(p.at, p.key+" is empty; use the name of a file")
	case name != "" && holds != "":
		r.fromFile(p.at, name, holds)
		fallthrough
	default:
		if name = r.fileName(p.at, name); strings.Contains(name, "://") {
			r.Reject(p.at, "this is a URL; use the name of a file")
		}
		p.value.SetString(name)
	}
}

// sectionReport is the [field.Report] on a section, with its keys.
type sectionReport struct {
	all  *yamlfile.Report
	path string
}

func (r sectionReport) Reject(key, text string) { r.all.Reject(join(r.path, key), text) }

func (r sectionReport) Warn(key, text string) { r.all.Warn(join(r.path, key), text) }
