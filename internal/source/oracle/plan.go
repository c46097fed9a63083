package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. Two of them need a transaction to see one snapshot.
type plan struct {
	selection source.Selection
	kinds     []kind // of the selected columns
	at        []int  // where their values are in a row of the result
	width     int    // of such a row
	time      timeKind
	steps     []step
	order     keyIndex // for a read by key
	ties      string   // the order of rows that share a timestamp; empty where no read goes on within them
}

// large reports whether rows have values of any size.
func (p plan) large() bool { return p.width > len(p.kinds) }

type step struct {
	sql   string
	binds []any
	// explained is sql with literals in the places of the binds; empty without any.
	explained string
}

// text joins the statements for people.
func (p plan) text() string {
	texts := make([]string, len(p.steps))
	for i, s := range p.steps {
		texts[i] = s.sql
	}
	return strings.Join(texts, ";\n")
}

func newPlan(r relation, q observer.Query, in observer.Range) (plan, error) {
	s, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: s}
	for _, c := range s.Columns {
		k := kindOf(c.Type)
		if k == kindUnfit {
			return plan{}, fmt.Errorf("column %s is of type %s, which fits into no event: list the columns to read without it, or read a query that selects %s",
				c.Name, c.Type, instead(c.Type, c.Name))
		}
		p.width += k.items()
		p.kinds, p.at = append(p.kinds, k), append(p.at, p.width-1)
	}
	for _, i := range s.Key {
		if p.kinds[i].items() > 1 {
			return plan{}, fmt.Errorf("column %s of type %s cannot be part of a key", s.Columns[i].Name, s.Columns[i].Type)
		}
	}
	if s.Timestamp >= 0 {
		if p.time, err = timeKindOf(s.Columns[s.Timestamp]); err != nil {
			return plan{}, err
		}
	}
	p.steps, err = p.write(r.from, q, in)
	return p, err
}

// statements is the dialect. Binds are positional, one for each occurrence, and
// the limit is a literal: a bound one would be guessed at by the optimizer.
func (p plan) statements(from string, q observer.Query) source.Statements {
	return source.Statements{
		From:      from,
		Column:    func(c source.Column, qualified string) string { return selected(kindOf(c.Type), qualified) },
		Size:      size,
		MaxLength: source.MaxRowBytes(q),
		Item:      item,
		NullsLast: true,
		Bound:     p.time.bound,
		// FETCH FIRST came with 12c, and is no faster.
		Limit: func(statement string, rows int) string {
			return fmt.Sprintf("SELECT * FROM (\n%s\n)\nWHERE ROWNUM <= %d", statement, rows)
		},
	}
}

func (p plan) write(from string, q observer.Query, in observer.Range) ([]step, error) {
	w := p.statements(from, q)
	if p.selection.Timestamp < 0 {
		return []step{{sql: tagged(w.All(p.selection), q.Stream)}}, nil
	}
	if in.ByKey {
		return nil, nil // [plan.writeByKey] writes it.
	}
	if in.Part == observer.PartUndated {
		undated, err := p.bind(&w, q, in, func() (string, []int) { return w.Nulls(p.selection, in) })
		return []step{undated}, err
	}
	nulls := source.NullsOf(q, p.selection, in)
	first, err := p.bind(&w, q, in, func() (string, []int) { return w.Range(p.selection, in, nulls != source.NullsInRange) })
	if err != nil {
		return nil, err
	}
	steps := []step{first}
	if nulls == source.NullsApart {
		text, _ := w.Nulls(p.selection, observer.Range{})
		steps = append(steps, step{sql: tagged(text, q.Stream)})
	}
	return steps, nil
}

// bind writes a statement twice: with binds, and with literals in their places. See
// [source.Statements.Range] for what the bounds are.
func (p plan) bind(w *source.Statements, q observer.Query, in observer.Range, write func() (string, []int)) (step, error) {
	w.KeyBound = func(n int, c source.Column) string { return keyBound(c, fmt.Sprintf(":%d", n)) }
	text, parts := write()
	cursor := func(bound string) (string, bool) {
		if _, ok := p.time.parse(bound, nil); !ok {
			return "", false
		}
		return p.time.literal(bound), true
	}
	bounds, err := source.Bounds(p.selection, in, parts, cursor, keyBind)
	if err != nil {
		return step{}, err
	}
	binds, literals := make([]any, len(bounds)), make([]string, len(bounds))
	for n, bind := range bounds {
		binds[n], literals[n] = bind, "'"+strings.ReplaceAll(bind, "'", "''")+"'"
	}
	w.Bound = func(n int) string { return p.time.value(literals[n-1]) }
	w.KeyBound = func(n int, c source.Column) string { return keyBound(c, literals[n-1]) }
	explained, _ := write()
	return step{sql: tagged(text, q.Stream), binds: binds, explained: tagged(explained, q.Stream)}, nil
}

// maxTag bounds what a statement says of its observer.
const maxTag = 64

// tagged names the observer in a comment, for a DBA who looks at V$SQL. What
// could end the comment, or look like a quote or a bind in it, is replaced.
func tagged(statement, stream string) string {
	if stream == "" {
		return statement
	}
	safe := []byte(stream[:min(len(stream), maxTag)])
	for i, c := range safe {
		if !slices.Contains([]byte("-_."), c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			safe[i] = '_'
		}
	}
	return "SELECT /* observerd:" + string(safe) + " */" + strings.TrimPrefix(statement, "SELECT")
}
