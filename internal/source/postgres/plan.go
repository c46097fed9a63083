package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. They run one after the other in one snapshot.
type plan struct {
	selection source.Selection
	types     []uint32 // of the items, domains resolved
	kinds     []kind   // of the selected columns
	leaves    bool     // see [source.Statements.Leaves]
	time      timeKind
	steps     []step
	locks     locks
	order     []int  // of the parts of the key, for a read by key
	ties      string // the order of rows that share a timestamp; empty where no read goes on within them
}

type step struct {
	sql    string
	params [][]byte
}

// errChanged says that the rows are not of the columns that were looked up: what
// is made of them would be no JSON, or no value of the type that was told.
var errChanged = &observer.Fault{
	Class: observer.ClassRetry,
	Err:   errors.New("read rows: columns have changed their types since they were looked up, as by ALTER TABLE; the next read looks again"),
}

// goneFault says that a table was dropped or renamed after it had been found to
// be read, as partitions are: whether it is missing, the next read finds out.
func goneFault(err error) error {
	return &observer.Fault{Class: observer.ClassRetry, Code: undefinedTable, Err: fmt.Errorf("%w; the next read looks again", err)}
}

// fits reports whether the server sends what was planned for. A key whose column has
// become wider has another text, which nobody was told of.
func (p plan) fits(fields []pgconn.FieldDescription) bool {
	if !slices.EqualFunc(p.types, fields, func(oid uint32, f pgconn.FieldDescription) bool { return f.DataTypeOID == oid }) {
		return false
	}
	return !slices.ContainsFunc(p.selection.Key, func(i int) bool {
		planned := p.selection.Columns[i].KeyWidth
		_, sent := keyRule(fields[i].DataTypeOID, int(fields[i].TypeModifier))
		return sent != planned && isBound(sent) && isBound(planned)
	})
}

// text joins the statements for people.
func (p plan) text() string {
	texts := make([]string, len(p.steps))
	for i, s := range p.steps {
		texts[i] = s.sql
	}
	return strings.Join(texts, ";\n")
}

func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	p, _, err := c.planFor(ctx, q, in)
	return p, err
}

// planLocked is plan for a read, which has to know what to lock.
func (c *session) planLocked(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	p, r, err := c.planFor(ctx, q, in)
	if err == nil {
		err = source.CheckOrder(in, p.orderID(in, r))
	}
	if err != nil {
		return p, err
	}
	p.locks, err = c.locks(ctx, r, p.steps)
	return p, err
}

func (c *session) planFor(ctx context.Context, q observer.Query, in observer.Range) (plan, relation, error) {
	r, err := c.describe(ctx, q)
	if err != nil {
		return plan{}, relation{}, err
	}
	p, err := newPlan(r, q, in)
	if err != nil {
		return p, r, source.Unfit(err)
	}
	if in.ByKey {
		indexes, err := c.indexes(ctx, r)
		if err != nil {
			return p, r, err
		}
		if p.order = keyOrder(r, p.selection, indexes); p.order != nil {
			p.steps, err = p.writeByKey(r, q, in, keyOperators(indexes))
		}
		return p, r, source.Unfit(err)
	}
	return p, r, nil
}

func newPlan(r relation, q observer.Query, in observer.Range) (plan, error) {
	s, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: s, types: make([]uint32, len(s.Columns)), kinds: make([]kind, len(s.Columns))}
	oids := make(map[string]uint32, len(r.columns))
	for i, column := range r.columns {
		oids[column.Name] = r.types[i]
	}
	for i, column := range s.Columns {
		p.types[i] = oids[column.Name]
		p.kinds[i] = kindOf(p.types[i])
	}
	if s.Timestamp >= 0 {
		if p.time, err = timeKindOf(s.Columns[s.Timestamp], p.kinds[s.Timestamp]); err != nil {
			return plan{}, err
		}
	}
	if p.keyIsPlain() {
		p.ties = orderID(p, r, s.TieOrder())
	}
	p.steps, err = p.write(r, q, in)
	return p, err
}

// firstOther is the first number of a type that is not the server's own.
const firstOther = 16384

// keyIsPlain reports whether the server compares the whole key by operators of its
// own. Those of other types, such as of an extension, may be in any schema.
func (p plan) keyIsPlain() bool {
	return !slices.ContainsFunc(p.selection.Key, func(i int) bool { return p.types[i] >= firstOther })
}

func (p *plan) write(r relation, q observer.Query, in observer.Range) ([]step, error) {
	// Those of the types of a timestamp, and of a key that is gone on from, are the
	// server's own.
	w := r.statements(q, p.selection, func(operator string, _ source.Column) string { return operatorOf("pg_catalog", operator) })
	if p.leaves = w.Leaves(p.selection); p.leaves {
		p.types = append(p.types, pgtype.Int4OID)
	}
	if p.selection.Timestamp < 0 {
		return []step{{sql: w.All(p.selection)}}, nil
	}
	if in.ByKey {
		return nil, nil // [plan.writeByKey] writes it.
	}
	nulls := source.NullsOf(q, p.selection, in)
	statement := func() (string, []int) { return w.Range(p.selection, in, nulls != source.NullsInRange) }
	if in.Part == observer.PartUndated {
		statement = func() (string, []int) { return w.Nulls(p.selection, in) }
	}
	text, parts := statement()
	params, err := p.params(in, parts)
	if err != nil {
		return nil, err
	}
	steps := []step{{sql: text, params: params}}
	if nulls == source.NullsApart {
		text, _ := w.Nulls(p.selection, observer.Range{})
		steps = append(steps, step{sql: text})
	}
	return steps, nil
}

// params are the bounds of a statement, see [source.Statements.Range].
func (p plan) params(in observer.Range, parts []int) ([][]byte, error) {
	cursor := func(bound string) ([]byte, bool) {
		_, ok := p.time.parse(bound, nil)
		return []byte(p.time.literal(bound)), ok
	}
	key := func(_ source.Column, part string) ([]byte, bool) { return []byte(part), true }
	return source.Bounds(p.selection, in, parts, cursor, key)
}
