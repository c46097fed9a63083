package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
	"github.com/observerd/observerd/internal/observer"
)

const (
	// maxNearest is how many names a message offers instead of a wrong one.
	maxNearest = 3
	// maxOthers is how many names it lists where none is like the wrong one.
	maxOthers = 10
)

// MissingError says that a table or a column does not exist.
type MissingError struct {
	// Kind is "table" or "column".
	Kind string
	// Name is the name that was asked for.
	Name string
	// In is where a column was looked for: a table, or empty for a query.
	In string
	// Nearest are the existing names most like it, the best first. Where there is none,
	// Others are the first of those that exist.
	Nearest, Others []string
	// Hidden says that the catalogue shows a table only to an account that may read it: one
	// that is not there may exist.
	Hidden bool
	// PrimaryKey are the columns of the table's primary key, where one for the key is
	// missing and the catalogue knows them.
	PrimaryKey []string
}

// NamePrimaryKey adds the table's primary key to a failure that a column for the key of
// q is missing. Other errors stay as they are, and so does one where look fails.
func NamePrimaryKey(err error, q observer.Query, look func() ([]string, error)) error {
	if missing, ok := errors.AsType[*MissingError](err); ok && missing.Kind == "column" && slices.Contains(q.Key, missing.Name) {
		if key, failed := look(); failed == nil {
			missing.PrimaryKey = key
		}
	}
	return err
}

// Fault is the error as a source returns it: a query that cannot work.
func (e *MissingError) Fault() error { return &observer.Fault{Class: observer.ClassQuery, Err: e} }

// Missing says that a table or a column, in a table or a query, is not among the names.
func Missing(kind, name, in string, names []string) *MissingError {
	e := &MissingError{Kind: kind, Name: name, In: in, Nearest: Nearest(name, names)}
	if len(e.Nearest) == 0 {
		e.Others = names[:min(len(names), maxOthers)]
	}
	return e
}

// MissingTable is the failure of a query of a table that is not among the names; hidden is
// [MissingError.Hidden].
func MissingTable(table string, names []string, hidden bool) error {
	e := Missing("table", table, "", names)
	e.Hidden = hidden
	return e.Fault()
}

// Unfit makes a failure of class query of an error that no attempt will cure;
// nil of nil. An error that has a class already keeps it.
func Unfit(err error) error {
	if err == nil || observer.ClassOf(err) != "" {
		return err
	}
	return &observer.Fault{Class: observer.ClassQuery, Err: err}
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q does not exist", e.Kind, e.Name)
	if e.Hidden {
		b.WriteString(", or this account was not granted a right to read it")
	}
	if e.In != "" {
		fmt.Fprintf(&b, " in %s", e.In)
	}
	if len(e.Nearest) > 0 {
		fmt.Fprintf(&b, "; is it %s?", strings.Join(fn.Each(e.Nearest, strconv.Quote), " or "))
	}
	switch {
	case len(e.PrimaryKey) > 0:
		fmt.Fprintf(&b, "; the primary key is (%s)", strings.Join(e.PrimaryKey, ", "))
	case len(e.Others) > 0:
		fmt.Fprintf(&b, "; there is %s", strings.Join(e.Others, ", "))
	case len(e.Nearest) == 0 && e.Kind == "column":
		b.WriteString("; use a query that returns columns")
	case len(e.Nearest) == 0:
		fmt.Fprintf(&b, "; there is %s", map[bool]string{true: "none that this account may read", false: "none at all"}[e.Hidden])
	}
	return b.String()
}

// Nearest returns the names most like the given one, the best first, at most
// three, and none that differ in more than half of its letters.
func Nearest(name string, names []string) []string {
	distance := func(n string) int { return nearest.Distance(strings.ToLower(name), strings.ToLower(n)) }
	near := fn.Only(names, func(n string) bool { return distance(n) <= max(1, len(name)/2) })
	slices.SortStableFunc(near, func(a, b string) int { return distance(a) - distance(b) })
	return near[:min(len(near), maxNearest)]
}
