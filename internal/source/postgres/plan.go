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
	relation  relation
	selection source.Selection
	types     []uint32 // of the items, domains resolved
	kinds     []kind   // of the selected columns
	leaves    bool     // see [source.Statements.Leaves]
	time      timeKind
	steps     []step
	locks     locks
	repeats   bool              // polls read so again and again
	order     []int             // of the parts of the key, for a read by key
	schemas   map[string]string // of the operators of columns, for a read by key; see [dialect]
	ties      string            // the order of rows that share a timestamp; empty where no read goes on within them
}

// step is a statement. plain is that of [source.Statements.Plain], which EXPLAIN gets too: it
// would write the sum of the lengths for each column, minutes for a wide relation.
type step struct {
	sql, plain string
	params     [][]byte
}

// errChanged says that the rows are not of the columns that were looked up: what
// is made of them would be no JSON, or no value of the type that was told.
var errChanged = &observer.Fault{
	Class: observer.ClassRetry,
	Err:   errors.New("read rows: columns have changed their types since they were looked up, as by ALTER TABLE; the next read looks again"),
}

// errForgotten says that the session does not have a prepared statement any more.
var errForgotten = &observer.Fault{
	Class: observer.ClassRetry,
	Code:  unknownName,
	Err:   errors.New("read rows: the session has lost what it had prepared, as by DEALLOCATE or a pooler; the next read sends it as text"),
}

// goneFault says that a table or a column was dropped or renamed after it had been found to
// be read, as partitions are: whether it is missing, the next read finds out.
func goneFault(err error, code string) error {
	return &observer.Fault{Class: observer.ClassRetry, Code: code, Err: fmt.Errorf("%w; the next read looks again", err)}
}

// fits reports whether the server sends what was planned for. A key whose column has
// become wider has another text than the columns of the stream say.
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

// planLocked is plan for a read, which has to know what to lock.
func (c *session) planLocked(ctx context.Context, q observer.Query, in observer.Range) (p plan, err error) {
	if r, ok := c.source.relations.fresh(q.Table); ok {
		p, err = c.planOf(ctx, r, q, in)
	} else {
		p, err = c.plan(ctx, q, in)
	}
	if err == nil {
		err = source.CheckOrder(in, p.orderID(p.order), p.ties)
	}
	if err != nil {
		return p, err
	}
	p.locks, err = c.locks(ctx, q, p)
	return p, err
}

func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	r, err := c.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	return c.planOf(ctx, r, q, in)
}

// planOf plans a read of what is known.
func (c *session) planOf(ctx context.Context, r relation, q observer.Query, in observer.Range) (plan, error) {
	p, err := newPlan(r, q)
	if err != nil {
		err = source.NamePrimaryKey(err, q, func() ([]string, error) { return c.primaryKey(ctx, r) })
		return p, source.Unfit(err)
	}
	if in.Part == observer.PartKey && keyOneWay(r, p.selection) != "" {
		return p, source.Unfit(observer.ErrNoKeyLookup)
	}
	if in.ByKey {
		indexes, err := c.indexes(ctx, r)
		if err != nil {
			return p, err
		}
		p.order, p.schemas = keyOrder(r, p.selection, indexes), keyOperators(indexes)
	}
	return p, source.Unfit(p.write(q, in))
}

// newPlan resolves the names of a query.
func newPlan(r relation, q observer.Query) (plan, error) {
	s, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{relation: r, selection: s, types: make([]uint32, len(s.Columns)), kinds: make([]kind, len(s.Columns))}
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
	// The server compares the whole key with its text, by operators of its own. Those of other
	// types, such as of an extension, may be in any schema.
	if keyOneWay(r, s) == "" && !slices.ContainsFunc(s.Key, func(i int) bool { return p.types[i] >= firstOther }) {
		p.ties = p.orderID(s.TieOrder())
	}
	return p, nil
}

// firstOther is the first number of a type that is not the server's own.
const firstOther = 16384

// isSingle reports whether it is one statement that needs no settings of its own.
func (p plan) isSingle() bool { return len(p.steps) == 1 && p.order == nil }

// write writes the statements.
func (p *plan) write(q observer.Query, in observer.Range) error {
	p.repeats = in.From != "" && in.Key == ""
	s, d := p.selection, dialect{schemas: p.schemas, sizes: p.relation.sizes}
	w := source.Statements{
		Dialect: d, Query: q, Selection: s, In: in, Order: p.order, From: p.relation.from, Laterals: true, NullsLast: true,
		Rows: !slices.ContainsFunc(s.Key, func(i int) bool { return d.schema(s.Columns[i]) != d.schema(s.Columns[s.Key[0]]) }),
	}
	plain := w.Plain()
	if long := p.relation.named(s); long != nil {
		w.Behind, d.named = source.Lateral(strings.Join(long, ", "), "l"), true
	}
	w.Dialect = d
	if p.leaves = w.Leaves(); p.leaves {
		p.types = append(p.types, pgtype.Int4OID)
	}
	for _, write := range w.Writers() {
		text, parts := write(w)
		bare, _ := write(plain)
		params, err := source.Bounds(p.selection, in, parts, p.time.param, func(_ source.Column, part string) ([]byte, bool) { return []byte(part), true })
		if err != nil {
			return err
		}
		p.steps = append(p.steps, step{sql: text, plain: bare, params: params})
	}
	return nil
}
