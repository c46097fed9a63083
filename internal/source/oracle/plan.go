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
	relation  relation
	selection source.Selection
	kinds     []kind // of the selected columns
	at        []int  // where their values are in a row of the result
	width     int    // of such a row
	time      timeKind
	steps     []step
	order     source.KeyIndex // for a read by key
	ties      string          // the order of rows that share a timestamp; empty where no read goes on within them
}

// large reports whether rows have values of any size.
func (p plan) large() bool { return p.width > len(p.kinds) }

type step struct {
	sql   string
	binds []any
	// explained is sql with literals in the places of the binds; empty without any.
	explained string
	// plain is that of [source.Statements.Plain].
	plain string
}

// newPlan resolves the names of a query.
func newPlan(r relation, q observer.Query) (plan, error) {
	s, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{relation: r, selection: s}
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
	return p, nil
}

// dialect is that of a read. Binds are positional, one for each occurrence, and
// the limit is a literal: a bound one would be guessed at by the optimizer.
type dialect struct {
	source.Standard
	time     timeKind
	literals []string // in the places of the binds; nil for these
}

// Column implements [source.Dialect].
func (dialect) Column(c source.Column, qualified string) string {
	return selected(kindOf(c.Type), qualified)
}

// Bound implements [source.Dialect].
func (d dialect) Bound(n, part int, c source.Column) string {
	text := fmt.Sprintf(":%d", n)
	if d.literals != nil {
		text = d.literals[n-1]
	}
	if part < 0 {
		return d.time.value(text)
	}
	return keyBound(c, text)
}

// Limit implements [source.Dialect]. FETCH FIRST came with 12c, and is no faster.
func (dialect) Limit(statement string, rows int) string {
	return fmt.Sprintf("SELECT * FROM (\n%s\n)\nWHERE ROWNUM <= %d", statement, rows)
}

// write writes the statements: with binds, and with literals in their places, and plain.
func (p *plan) write(q observer.Query, in observer.Range) error {
	w := source.Statements{
		Dialect: dialect{time: p.time}, Query: q, Selection: p.selection, In: in, Order: p.order.Parts,
		From: p.relation.from, Lengths: true, NullsLast: true,
	}
	for _, write := range w.Writers() {
		text, parts := write(w)
		bounds, err := source.Bounds(p.selection, in, parts, p.time.bind, keyBind)
		if err != nil {
			return err
		}
		binds, literals := make([]any, len(bounds)), make([]string, len(bounds))
		for n, bind := range bounds {
			binds[n], literals[n] = bind, "'"+strings.ReplaceAll(bind, "'", "''")+"'"
		}
		explained := w
		explained.Dialect = dialect{time: p.time, literals: literals}
		literally, _ := write(explained)
		plain, _ := write(w.Plain())
		p.steps = append(p.steps, step{
			sql:       p.commented(text, q.Stream),
			binds:     binds,
			explained: p.commented(literally, q.Stream),
			plain:     p.commented(plain, q.Stream),
		})
	}
	return nil
}

// commented adds the comments of a statement. That of the hint is in front, where
// Oracle looks for it: without it the optimizer would sort a large table, for each read
// by key anew.
func (p *plan) commented(statement, stream string) string {
	statement = tagged(statement, stream)
	if p.order.Parts != nil {
		statement = `SELECT /*+ INDEX_ASC(q "` + p.order.Name + `") */` + strings.TrimPrefix(statement, "SELECT")
	}
	return statement
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
