package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. They run one after the other in one snapshot.
type plan struct {
	selection source.Selection
	from      string
	steps     []step
}

type step struct {
	sql  string
	args []any
}

// text joins the statements for people.
func (p plan) text() string {
	texts := make([]string, len(p.steps))
	for i, s := range p.steps {
		texts[i] = s.sql
	}
	return strings.Join(texts, ";\n")
}

func (s *Source) plan(ctx context.Context, db queryer, q observer.Query, from string) (plan, error) {
	r, err := s.describe(ctx, db, q)
	if err != nil {
		return plan{}, err
	}
	return planFor(r, q, from)
}

func planFor(r relation, q observer.Query, from string) (plan, error) {
	selection, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: selection, from: r.from}
	// The driver parses the text of columns that are declared as DATE, DATETIME
	// or TIMESTAMP and so loses it. The unary plus makes an expression, which
	// has no declared type; WHERE and ORDER BY name the bare columns.
	w := source.Statements{From: r.from, Prefix: "+", Placeholder: "$1"}
	if selection.Timestamp < 0 {
		p.steps = []step{{sql: w.All(selection)}}
		return p, nil
	}
	var args []any
	if from != "" {
		value, ok := parseCursor(from)
		if !ok {
			return plan{}, errors.New("the cursor is no timestamp that SQLite could have stored")
		}
		args = []any{value}
	}
	nullable := selection.Columns[selection.Timestamp].Nullable
	skip := q.NullTimestamp == observer.NullSkip
	// SQLite sorts NULL first; without a cursor one statement returns all.
	if nullable && !skip && from != "" {
		p.steps = []step{{sql: w.Nulls(selection)}}
	}
	p.steps = append(p.steps, step{sql: w.Range(selection, from != "", nullable && skip), args: args})
	return p, nil
}

// sample selects the newest timestamps, for their form.
func (p plan) sample() string {
	ts := "q." + source.Quote(p.selection.TimestampName())
	return fmt.Sprintf("SELECT +%[1]s\nFROM %[2]s AS q\nWHERE %[1]s IS NOT NULL\nORDER BY %[1]s DESC\nLIMIT 100", ts, p.from)
}
