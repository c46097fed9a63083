package promtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// recordedNames finds the names of recording rules in an expression.
var recordedNames = regexp.MustCompile(`observerd:\w+:\w+`)

// alertNames finds the alerts that an expression asks for.
var alertNames = regexp.MustCompile(`alertname="(\w+)"`)

// needs are the names of the rules that the suite looks at.
func (s suite) needs() (names []string) {
	for _, st := range s.Stories {
		for _, c := range st.Alerts {
			names = append(names, c.Alertname)
		}
		for _, c := range st.Results {
			names = append(names, recordedNames.FindAllString(c.Expr, -1)...)
			for _, m := range alertNames.FindAllStringSubmatch(c.Expr, -1) {
				names = append(names, m[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// neededBy returns the files with the rules of these names alone, and those that
// they rest on: promtool evaluates all rules at each instant of each story, and
// most of them say nothing of what a story is about.
func neededBy(files []RuleFile, names []string) []RuleFile {
	needed := make(map[string]bool)
	var need func(name string)
	need = func(name string) {
		if needed[name] {
			return
		}
		needed[name] = true
		for _, file := range files {
			for _, r := range file.Rules() {
				if r.Record+r.Alert != name {
					continue
				}
				for _, other := range recordedNames.FindAllString(r.Text, -1) {
					need(other)
				}
			}
		}
	}
	for _, name := range names {
		need(name)
	}
	return edit(files, func(r Rule) (Rule, bool) { return r, needed[r.Record+r.Alert] })
}

// edit returns the files with their rules as change returns them, less those of
// which it reports false.
func edit(files []RuleFile, change func(Rule) (Rule, bool)) []RuleFile {
	edited := make([]RuleFile, len(files))
	for i, file := range files {
		edited[i].Path = file.Path
		for _, g := range file.Groups {
			rules := g.Rules
			g.Rules = nil
			for _, r := range rules {
				if changed, keep := change(r); keep {
					g.Rules = append(g.Rules, changed)
				}
			}
			if len(g.Rules) > 0 {
				edited[i].Groups = append(edited[i].Groups, g)
			}
		}
	}
	return edited
}

// passes runs the suite against the rules, in a folder of its own.
func (s suite) passes(t *testing.T, files []RuleFile) (says string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	s.RuleFiles = nil
	for _, file := range neededBy(files, s.needs()) {
		if len(file.Groups) > 0 {
			s.RuleFiles = append(s.RuleFiles, filepath.Base(file.Path))
			writeYAML(t, filepath.Join(dir, filepath.Base(file.Path)), file)
		}
	}
	writeYAML(t, filepath.Join(dir, "suite.yaml"), s)
	return promtool(t, dir, "test", "rules", "suite.yaml")
}

func writeYAML(t *testing.T, path string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
