package config

import (
	"regexp"
	"strings"
)

var (
	reference    = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${NAME} in the value of a key by the variable; $${ is a plain
// ${. otherwise is what can be written in the place of a variable.
func (r resolver) expand(key, text, otherwise string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
		if !closed || !variableName.MatchString(name) {
			r.Reject(key, "the name of a variable cannot be read; write ${NAME}, or $${ for a plain ${")
			return ""
		}
		value, ok := r.lookup(name)
		if !ok {
			r.Reject(key, "the variable "+name+" is not set; set it in the environment, or write "+otherwise)
		}
		return value
	})
}

// fileName is the name that the key of a file gives, with ${NAME} replaced.
// Every key whose unit is "file name" goes through it when the file is needed.
// An empty result may be a mistake at the key.
func (r resolver) fileName(key, written string) string {
	return r.expand(key, written, "the name itself")
}

func (r resolver) lookup(name string) (string, bool) {
	for _, entry := range r.options.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// withoutVariables is the part of a value that is in the file itself.
func withoutVariables(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		return ""
	})
}
