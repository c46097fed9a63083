package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is one mistake, or one thing worth a warning.
type Problem struct {
	// File is the path as it was given to [NewReport]; empty when the value came
	// from elsewhere.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; both are 0 when the problem is the file
	// itself, which is missing for example.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Origin names the variable or flag that the value came from; empty for a
	// value of the file.
	Origin string `json:"origin,omitempty"`
	// Key is the dotted key, as far as one is concerned.
	Key string `json:"key,omitempty"`
	// Text says what is wrong and what to write instead. It holds no secret.
	Text string `json:"text"`
	// Unread says that a file cannot be read, Denied that it is for lack of a right.
	Unread, Denied bool `json:"-"`
}

// String is "config.yaml:3:5: …", or "OBSERVERD_…: …".
func (p Problem) String() string {
	if where := p.where(); where != "" {
		return where + ": " + p.Text
	}
	return p.Text
}

func (p Problem) where() string {
	switch {
	case p.Origin != "":
		return p.Origin
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	return p.File
}

// Sort brings problems into the order of the files and of what is in them, and then by the name of the
// variable or flag.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Origin, b.Origin),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Text, b.Text),
		)
	})
}
