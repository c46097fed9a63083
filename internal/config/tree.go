package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
)

// reader checks YAML nodes against the schema. It returns nested maps of texts
// and notes where each was.
type reader struct {
	*yamlfile.Report
	names names
	// lists are the entries of each list so far, from all files.
	lists map[string][]any
	// in is the file that is read, and exposed whether every user of the host may.
	in      file
	exposed bool
}

// section reads a mapping with known keys.
func (r reader) section(n *yaml.Node, v reflect.Value, path string) map[string]any {
	family := r.names.familyOf(v)
	family.choose(r.names.typeIn(yamlfile.Child(n, "type").Value))
	known := r.names.known(v, path)
	values := make(map[string]any)
	r.Entries(n, path, func(key, value *yaml.Node) {
		p, ok := find(key.Value, known)
		if !ok {
			// The key is repeated only if it looks like one.
			r.RejectAt(yamlfile.Position(key), path, "unknown key "+yamlfile.QuoteKey(key.Value)+"; "+r.suggest(key.Value, known, path, family))
			return
		}
		if shape := p.shape(); (shape == scalar || shape == words) && r.IsTwice(key, p.at) {
			return
		}
		r.SetOrigin(p.at, yamlfile.Position(key))
		if text := r.value(value, p); text != nil {
			values[p.key] = text
		}
	})
	return values
}

// known returns the keys of a section: of one without a kind those of all kinds.
func (n names) known(v reflect.Value, path string) []place {
	all := n.keys(v, path)
	if f := n.familyOf(v); f.kinds != nil && f.settings.IsNil() {
		for _, k := range f.kinds {
			all = append(all, n.keys(reflect.ValueOf(k.Settings()).Elem(), path)...)
		}
	}
	return all
}

func find(key string, among []place) (place, bool) {
	return fn.Find(among, func(p place) bool { return p.key == key })
}

// table reads a mapping of names to sections.
func (r reader) table(n *yaml.Node, t reflect.Type, path string) map[string]any {
	values := make(map[string]any)
	r.Entries(n, path, func(key, value *yaml.Node) {
		if why := badName(key.Value); why != "" {
			r.RejectAt(yamlfile.Position(key), path, why)
			r.MarkWrong(join(path, key.Value))
			return
		}
		at := join(path, key.Value)
		if r.IsTwice(key, at) {
			return
		}
		r.SetOrigin(at, yamlfile.Position(key))
		if yamlfile.IsNull(value) {
			values[key.Value] = make(map[string]any)
		} else if v := r.value(value, place{at: at, value: reflect.New(t).Elem()}); v != nil {
			values[key.Value] = v
		}
	})
	return values
}

// pairs returns the names and texts of a mapping, in turns: a name may hold a point, at
// which the keys of layers are cut.
func (r reader) pairs(n *yaml.Node, p place) []any {
	values := []any{}
	r.Entries(n, p.at, func(key, value *yaml.Node) {
		at := join(p.at, key.Value)
		if r.IsPlain(value, at) {
			if text := r.Text(value, at, "one text"); text != nil {
				r.checkExposed(p, at, text)
				values = append(values, key.Value, text)
				return
			}
		}
		r.MarkWrong(p.at)
	})
	return values
}

// value reads what belongs to a key; nil means nothing that can be used.
func (r reader) value(n *yaml.Node, p place) any {
	path := p.at
	if !r.IsPlain(n, path) {
		return nil
	}
	switch p.shape() {
	case section:
		if r.Is(n, yaml.MappingNode, path, "a section; set its keys below it") {
			return r.section(n, p.value, path)
		}
	case table:
		if r.Is(n, yaml.MappingNode, path, "a section; add names below it, each with its keys") {
			return r.table(n, p.value.Type().Elem(), path)
		}
	case list:
		if r.Is(n, yaml.SequenceNode, path, `a list; begin each entry with "- "`) {
			return r.list(n, p.value.Type().Elem(), path)
		}
	case pairs:
		if r.Is(n, yaml.MappingNode, path, "a section; add names below it, each with one text") {
			return r.pairs(n, p)
		}
	case words:
		if n.Kind == yaml.SequenceNode {
			one := cmp.Or(map[string]string{"locks.hierarchies": "one text, such as fileset > document"}[path], "one name")
			texts := r.Texts(n, path, one)
			r.checkExposed(p, path, texts...)
			return texts
		}
		text := r.Text(n, path, "one name or a list of names")
		r.checkExposed(p, path, text)
		return text
	default:
		text := r.Text(n, path, "one text, number or switch")
		r.checkExposed(p, path, text)
		return text
	}
	return nil
}

func (r reader) list(n *yaml.Node, t reflect.Type, path string) []any {
	values := r.lists[path]
	for _, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, len(values))
		r.SetOrigin(at, yamlfile.Position(item))
		if yamlfile.IsNull(item) {
			r.Reject(at, "this entry is empty; set its keys, or remove it")
		}
		values = append(values, r.value(item, place{at: at, value: reflect.New(t).Elem()}))
	}
	r.lists[path] = values
	return values
}

// suggest says what to write in the place of an unknown key.
func (r reader) suggest(key string, known []place, path string, family family) string {
	if strings.Contains(key, ".") && yamlfile.IsPrintable(key) {
		return "use a separate key for each part, one below the other"
	}
	if other, ok := family.with(key); ok {
		return "a " + family.section + " of type " + family.kind + " has none; remove it, or set type: " + other
	}
	name, isType := strings.CutSuffix(key, "-observer")
	if path != "scheduler" || !isType {
		return nearest.Suggest(key, fn.Each(known, func(p place) string { return p.key }))
	}
	if near := nearest.Name(name, r.names.types); near != "" {
		return "use " + near + "-observer"
	}
	return "no observer has this type: correct the name, or remove the section"
}

// scanNames finds the names that the files introduce, before they are checked
// against the keys that follow from them. Mistakes are skipped here: reading the tree
// reports them.
func scanNames(files []file, environ variables) names {
	n := names{types: builtinNames(), variables: environ}
	for _, f := range files {
		n.scan(f.root)
	}
	n.types, n.sources = fn.Distinct(n.types), fn.Distinct(n.sources)
	return n
}

func (n *names) scan(root *yaml.Node) {
	for _, item := range yamlfile.Child(root, "observers").Content {
		if name := n.typeIn(yamlfile.Child(item, "type").Value); badName(name) == "" {
			n.types = append(n.types, name)
		}
	}
	sources := yamlfile.Child(root, "sources")
	for i := 0; i+1 < len(sources.Content); i += 2 {
		if name := sources.Content[i].Value; badName(name) == "" {
			n.sources = append(n.sources, name)
		}
	}
}

// checkExposed rejects secrets that are written in a configuration that every user of the
// host may read. It checks a file alone, before the environment is merged over it: a
// password without effect is a password too. The key is not marked as wrong, so that its
// other mistakes are reported as well.
func (r reader) checkExposed(p place, at string, texts ...any) {
	if !r.exposed || !isSecret(p.value.Type()) {
		return
	}
	for _, text := range texts {
		written, _ := text.(string)
		written = withoutVariables(written)
		if p.unit() == "URL" && dburl.HoldsPassword(written) || p.unit() != "URL" && written != "" {
			r.RejectAt(r.OriginOf(at), at, whyExposed(r.in, p, at))
			return
		}
	}
}

func whyExposed(in file, p place, at string) string {
	what, instead := "password", "use ${NAME} for it"
	if p.unit() != "URL" {
		what = "secret"
	}
	if p.file {
		instead += ", or " + p.key + "-file"
	}
	if strings.HasPrefix(p.at, "sources.") {
		instead = "use ${NAME} for it, url-file or password-file"
	}
	return fmt.Sprintf("%s holds a %s, and every user of this host may read this file (mode %04o); %s, or %s",
		at, what, in.info.Mode().Perm(), fileowner.Close(in.path, in.info), instead)
}

// warnOfReaders warns of a file that holds a secret and that every user of the
// host may read. It is not a mistake: the mode of a file that is mounted into a
// container often cannot be changed. Container engines themselves put secrets into
// /run/secrets with mode 0444, where it cannot be changed and need not be: there are
// no other users in the container.
func (o Options) warnOfReaders(r *yamlfile.Report, key, name string, info fs.FileInfo) {
	if !o.OthersMayRead(info) || info.Mode().Perm() == 0o444 && strings.HasPrefix(name, "/run/secrets/") {
		return
	}
	r.Warn(key, fmt.Sprintf("the file holds a secret, and every user of this host may read it (mode %04o); %s",
		info.Mode().Perm(), fileowner.Close(name, info)))
}
