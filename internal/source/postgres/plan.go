package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. They run one after the other in one snapshot.
type plan struct {
	selection source.Selection
	kinds     []kind // of the selected columns
	time      timeKind
	steps     []step
}

type step struct {
	sql    string
	params [][]byte
}

// text joins the statements for people.
func (p plan) text() string {
	texts := make([]string, len(p.steps))
	for i, s := range p.steps {
		texts[i] = s.sql
	}
	return strings.Join(texts, ";\n")
}

func (c *session) plan(ctx context.Context, q observer.Query, from string) (plan, error) {
	r, err := c.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	s, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: s, kinds: make([]kind, len(s.Columns))}
	oids := make(map[string]uint32, len(r.columns))
	for i, column := range r.columns {
		oids[column.Name] = r.types[i]
	}
	for i, column := range s.Columns {
		p.kinds[i] = kindOf(oids[column.Name])
	}
	if s.Timestamp >= 0 {
		if p.time, err = timeKindOf(s.Columns[s.Timestamp], p.kinds[s.Timestamp]); err != nil {
			return plan{}, err
		}
	}
	p.steps, err = p.write(r.from, q, from)
	return p, err
}

func (p plan) write(table string, q observer.Query, from string) ([]step, error) {
	w := source.Statements{From: table, Placeholder: "$1"}
	if p.selection.Timestamp < 0 {
		return []step{{sql: w.All(p.selection)}}, nil
	}
	var params [][]byte
	if from != "" {
		if _, ok := p.time.parse(from, nil); !ok {
			return nil, fmt.Errorf("the cursor does not fit column %s: has its type changed?", p.selection.TimestampName())
		}
		params = [][]byte{[]byte(p.time.literal(from))}
	}
	nullable := p.selection.Columns[p.selection.Timestamp].Nullable
	skip := q.NullTimestamp == observer.NullSkip
	steps := []step{{sql: w.Range(p.selection, from != "", nullable && skip), params: params}}
	// Without a cursor the first statement has returned these already.
	if nullable && !skip && from != "" {
		steps = append(steps, step{sql: w.Nulls(p.selection)})
	}
	return steps, nil
}
