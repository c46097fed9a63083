package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// report is what a run has found.
type report struct {
	circumstances []circumstance
	figures       []figure
}

// circumstance is something that figures depend on.
type circumstance struct{ what, value string }

// text is the report for a terminal.
func (r report) text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.circumstances {
		fmt.Fprintf(table, "%s\t%s\n", c.what, c.value)
	}
	group := ""
	for _, f := range r.figures {
		if f.group != group {
			group = f.group
			fmt.Fprintf(table, "\n%s\n", group)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", f.what, f.value, f.beside, f.goal, f.verdict())
	}
	return table.Flush()
}

// markdown is the report for a document.
func (r report) markdown() []byte {
	var b bytes.Buffer
	for _, c := range r.circumstances {
		fmt.Fprintf(&b, "- %s: %s\n", c.what, c.value)
	}
	group := ""
	for _, f := range r.figures {
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
	return b.Bytes()
}

// The figures of a document stand between these lines.
const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

// update replaces the figures of a document and leaves its words alone.
func (r report) update(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	head, rest, begun := bytes.Cut(old, []byte(beginMark))
	_, tail, ended := bytes.Cut(rest, []byte(endMark))
	if !begun || !ended {
		return fmt.Errorf("%s lacks the lines %s and %s", path, beginMark, endMark)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(beginMark + "\n\n")
	b.Write(r.markdown())
	b.WriteString("\n" + endMark)
	b.Write(tail)
	return os.WriteFile(path, b.Bytes(), 0o644)
}
