package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Problem is one mistake, or one thing worth a warning.
type Problem struct {
	// File is the path as it was given to [Load]; empty when the value came
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
	// unread says that a file cannot be read, denied that it is for lack of a right.
	unread, denied bool
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

// ErrUnread is what an [*Error] is, for [errors.Is], when nothing is wrong but that
// files cannot be read: they may be there later.
var ErrUnread = errors.New("a file cannot be read")

// Error is every mistake of a configuration, in the order of the file and
// then by the name of the variable or flag. It is the only error of [Load].
type Error struct {
	// Problems has at least one entry.
	Problems []Problem
}

// Error has one line for each mistake.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Is makes errors.Is(err, fs.ErrPermission) true when nothing is wrong but
// that files may not be read: then rights have to be given, not keys written. It
// does the same for [ErrUnread].
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrPermission:
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.denied })
	case ErrUnread:
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.unread })
	}
	return false
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Origin, b.Origin),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Text, b.Text),
		)
	})
}
