package promtest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// RuleFile is a file of recording and alerting rules.
type RuleFile struct {
	// Path is where it was read.
	Path   string      `yaml:"-"`
	Groups []RuleGroup `yaml:"groups"`
}

// RuleGroup is a group of rules that Prometheus evaluates together.
type RuleGroup struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval,omitempty"`
	Rules    []Rule         `yaml:"rules"`
}

// Rule is a recording rule, or an alert.
type Rule struct {
	Record        string            `yaml:"record,omitempty"`
	Alert         string            `yaml:"alert,omitempty"`
	Text          string            `yaml:"expr"`
	For           model.Duration    `yaml:"for,omitempty"`
	KeepFiringFor model.Duration    `yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations,omitempty"`

	file string
}

// ReadRules reads a file of rules. A key that is not known is an error.
func ReadRules(path string) (RuleFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return RuleFile{}, fmt.Errorf("read rules: %w", err)
	}
	file := RuleFile{Path: path}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return RuleFile{}, fmt.Errorf("read rules: %s: %w", path, err)
	}
	for _, group := range file.Groups {
		for i := range group.Rules {
			group.Rules[i].file = filepath.Base(path)
		}
	}
	return file, nil
}

// Rules are those of all groups, in their order.
func (f RuleFile) Rules() (all []Rule) {
	for _, group := range f.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// recorded are the recording rules of the files.
func recorded(files []RuleFile) (all []Rule) {
	for _, file := range files {
		for _, r := range file.Rules() {
			if r.Record != "" {
				all = append(all, r)
			}
		}
	}
	return all
}

// shownByTemplates finds the labels that a template of an alert shows.
var shownByTemplates = regexp.MustCompile(`\$labels\.([a-zA-Z_]\w*)`)

// Expr is the rule's expression, with the labels that its texts show.
func (r Rule) Expr() Expr {
	e := Expr{Where: r.file + ": " + r.Record + r.Alert, Text: r.Text}
	for _, texts := range []map[string]string{r.Labels, r.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			for _, m := range shownByTemplates.FindAllStringSubmatch(texts[name], -1) {
				e.Shown = append(e.Shown, m[1])
			}
		}
	}
	return e
}
