package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/test/kit/testbed"
)

// partMark begins the figures of one measurement.
func partMark(name string) string { return "<!-- bench:" + name + " -->" }

// block is what stands between the marks of a document.
type block struct {
	// head are the circumstances of the run that has measured everything.
	head string
	// parts are the figures, by the names of their measurements.
	parts map[string]string
}

// readBlock takes the text between the marks apart.
func readBlock(text string) block {
	b := block{parts: map[string]string{}}
	b.head, text, _ = strings.Cut(text, "<!-- bench:")
	for text != "" {
		var name, part string
		name, text, _ = strings.Cut(text, " -->")
		part, text, _ = strings.Cut(text, "<!-- bench:")
		b.parts[name] = strings.TrimSpace(part)
	}
	b.head = strings.TrimSpace(b.head)
	return b
}

// text puts the block together again, in the order of the measurements. What
// none of them has measured is not kept.
func (b block) text() string {
	texts := []string{b.head}
	for _, name := range names() {
		if part, ok := b.parts[name]; ok {
			texts = append(texts, partMark(name)+"\n"+part)
		}
	}
	return strings.Join(texts, "\n\n")
}

// list writes the circumstances of the run.
func (r report) list() string {
	var b strings.Builder
	for _, c := range r.circumstances {
		fmt.Fprintf(&b, "- %s: %s\n", c.what, c.value)
	}
	return strings.TrimSpace(b.String())
}

// apart says in what the circumstances differ from those at the head of a
// document, for figures of another run.
func (r report) apart(head string) string {
	known := strings.Split(head, "\n")
	if slices.ContainsFunc(r.measured, isByName) {
		known = nil // The head may be replaced without them.
	}
	text := "Measured in a run of its own:\n\n"
	for line := range strings.SplitSeq(r.list(), "\n") {
		if !slices.Contains(known, line) {
			text += line + "\n"
		}
	}
	return text + "\n"
}

// tables are the figures of a measurement, a table for each group.
func (m measured) tables() string {
	var b strings.Builder
	group := ""
	for _, f := range m.figures {
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n### %s\n\n| what | measured | beside it | goal | |\n|---|---|---|---|---|\n", group)
		}
		verdict := f.verdict()
		if verdict != "" {
			verdict = "**" + verdict + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.what, f.value, f.beside, f.goal, verdict)
	}
	return strings.TrimSpace(b.String())
}

// onto replaces in a block what was measured. A run of everything replaces all of it but
// what is measured by name; other runs keep the figures of what they have not measured.
func (r report) onto(old string) string {
	b := readBlock(old)
	if r.everything() || len(b.parts) == 0 {
		b = block{head: r.list(), parts: byName(b.parts)}
		for _, m := range r.measured {
			b.parts[m.name] = m.tables()
		}
		return b.text()
	}
	for _, m := range r.measured {
		b.parts[m.name] = r.apart(b.head) + m.tables()
	}
	return b.text()
}

// isByName reports whether the figures outlive a run of everything.
func isByName(m measured) bool {
	return slices.ContainsFunc(measurements(), func(one measurement) bool { return one.byName && one.name == m.name })
}

// everything reports whether all was measured that a run measures by itself.
func (r report) everything() bool {
	for _, m := range measurements() {
		if !m.byName && !slices.ContainsFunc(r.measured, func(found measured) bool { return found.name == m.name }) {
			return false
		}
	}
	return true
}

// byName are the figures that are measured by name.
func byName(parts map[string]string) map[string]string {
	kept := make(map[string]string)
	for _, m := range measurements() {
		if text, ok := parts[m.name]; ok && m.byName {
			kept[m.name] = text
		}
	}
	return kept
}

// update replaces the figures of a document and leaves its words alone.
func (r report) update(path string) error {
	return testbed.Rewrite(path, "bench", func(old []byte) []byte { return []byte(r.onto(string(old))) })
}
