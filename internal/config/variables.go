package config

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	// reference is a plain ${, or a variable; its end may be missing.
	reference    = regexp.MustCompile(`\$\$\{|\$\{([^}]*)\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// inQuery is a variable in a text where $${ begins a quoted text of PostgreSQL.
	inQuery = regexp.MustCompile(`(^|[^$])\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`)
)

// variables are the environment, as os.Environ returns it.
type variables []string

// expand replaces ${NAME} in the value of a key by the variable, and ${NAME:-default} by
// the default where the variable is not set, or empty; $${ is a plain ${. otherwise is
// what can be written in the place of a variable, "" for a default. why says what to write; "" means that
// there is a value.
func (v variables) expand(text, otherwise string) (value, why string) {
	value = reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name, preset, hasPreset, ok := splitReference(found)
		if !ok {
			why = "the name of a variable cannot be read; use ${NAME}, or ${NAME:-default} without another variable in it, or $${ for a plain ${"
			return ""
		}
		set, ok := v.lookup(name)
		switch {
		case hasPreset && set == "":
			return preset
		case !ok && why == "":
			why = "the variable " + name + " is not set; set it in the environment, or use " + cmp.Or(otherwise, "${"+name+":-default}")
		}
		return set
	})
	if why != "" {
		return "", why
	}
	return value, ""
}

func splitReference(found string) (name, preset string, hasPreset, ok bool) {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
	name, preset, hasPreset = strings.Cut(inner, ":-")
	return name, preset, hasPreset, closed && variableName.MatchString(name) && !strings.Contains(preset, "${")
}

func (v variables) lookup(name string) (string, bool) {
	for _, entry := range v {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// expand returns the value of a key with its variables, after a mistake "".
func (r resolver) expand(key, text, otherwise string) string {
	value, why := variables(r.options.Environ).expand(text, otherwise)
	if why != "" {
		r.Reject(key, why)
	}
	return value
}

// fileName is the name that the key of a file gives, with ${NAME} replaced.
// Every key whose unit is "file name" goes through it when the file is needed.
// An empty result may be a mistake at the key.
func (r resolver) fileName(key, written string) string {
	return r.expand(key, written, "the name itself")
}

// expanded returns the value of a key with its variables; ok is false after a mistake.
// Messages show the value as it is written: a variable may hold a secret that belongs
// elsewhere.
func (d decoder) expanded(p place, written string) (text string, ok bool) {
	switch unit := p.tag.Get("unit"); {
	case unit == "file name" && !p.entry:
		return written, true // See [resolver.fileName].
	case unit == "SQL":
		if inQuery.MatchString(written) {
			d.Reject(p.at, p.key+" takes no variables, which could change what it asks; use the value itself, "+
				"or make a view of the query and name that at table, which takes ${NAME}")
			return "", false
		}
		return written, true
	}
	text, why := d.names.variables.expand(written, "")
	if why == "" && !utf8.ValidString(text) { // A variable or a flag may hold any bytes, but databases take none of them.
		why = p.key + " is not UTF-8; use printable text"
	}
	if why != "" {
		d.Reject(p.at, why)
		return "", false
	}
	d.hide(p.at, written, text)
	return text, true
}

func (d decoder) hide(path, written, text string) {
	if text != written {
		d.Hide(path, quote(text), quote(written)+" (expanded)")
	}
}

// typeIn is the type of an entry of a list, whose value decides which keys there are. A
// mistake in it is reported with the other keys.
func (n names) typeIn(written any) string {
	text, _ := written.(string)
	text, _ = n.variables.expand(text, "")
	return text
}

// withoutVariables is the part of a value that is in the file itself.
func withoutVariables(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		_, preset, _, _ := splitReference(found)
		return preset
	})
}
