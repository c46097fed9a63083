package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// Problem is one mistake, or one thing worth a warning.
type Problem = yamlfile.Problem

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
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Denied })
	case ErrUnread:
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Unread })
	}
	return false
}
