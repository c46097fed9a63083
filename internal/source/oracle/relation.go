package oracle

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// relation is what a query reads.
type relation struct {
	owner, table string // of the table or view; empty for a query or a link
	name         string // for messages; empty for a query
	from         string // what follows FROM
	columns      []source.Column
	shape        string // of the result, as the driver describes it
	linked       bool   // whether a link may be read through, as by a view
	others       others // as of when it was looked up
	charset      string // of the database; empty until it is read
}

// others says what brings the rows beside the transactions of this database.
//
// Views and queries are not looked through, so unknown is set for all of them. The
// catalogue tells an account nothing of the tables behind a view that it may not
// read itself, and ALL_DEPENDENCIES leaves out views over database links. A plan
// needs the rights to those tables, and names no materialized view of which it reads
// an index alone. An answer that is remembered would miss a view that is replaced.
type others struct{ remote, materialized, unknown bool }

// relations remembers what queries read. What is remembered is used as it is
// only for the kind of a timestamp, whose cursors tell themselves apart. A read
// asks the database first what it would return now (one round trip, which a
// table of the dictionary would cost as well) and looks the table up again if
// that has another shape. So a column that was added appears in the next read,
// a table that was replaced is read by its new types, and a synonym is followed
// to wherever it leads now. Types that the driver does not tell apart, such as
// VARCHAR2 and NVARCHAR2, are selected alike.
type relations struct {
	known sync.Map // a relation by its relationKey
}

func relationKey(q observer.Query) string { return q.Table + "\x00" + q.SQL }

func (r *relations) get(q observer.Query) (relation, bool) {
	known, _ := r.known.Load(relationKey(q))
	found, ok := known.(relation)
	return found, ok
}

func (r *relations) put(q observer.Query, found relation) { r.known.Store(relationKey(q), found) }

func (r *relations) forget(q observer.Query) { r.known.Delete(relationKey(q)) }

// relation returns what the query reads at this moment. It fails for the reason of the
// caller, or else by a fault.
func (c *session) relation(ctx context.Context, q observer.Query) (relation, error) {
	r, err := c.lookUp(ctx, q)
	if ctx.Err() == nil {
		err = source.Unfit(err)
	}
	return r, err
}

func (c *session) lookUp(ctx context.Context, q observer.Query) (relation, error) {
	if err := source.CheckQuery(q); err != nil {
		return relation{}, err
	}
	known, ok := c.source.relations.get(q)
	if ok {
		c.unclean = c.unclean || known.linked
		columns, shape, err := c.probe(ctx, known.from)
		switch {
		case err == nil && shape == known.shape:
			return known, nil
		case err == nil && q.Table == "":
			known.columns, known.shape = columns, shape
			c.source.relations.put(q, known)
			return known, nil
		case err != nil && observer.ClassOf(err) != observer.ClassQuery:
			return relation{}, err
		}
		c.source.relations.forget(q)
	}
	found, err := c.resolve(ctx, q)
	if err == nil {
		c.source.relations.put(q, found)
	}
	return found, err
}

// probe lets the database parse the statement and say what it would return.
func (c *session) probe(ctx context.Context, from string) ([]source.Column, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	rows, err := c.conn.QueryContext(ctx, "SELECT * FROM "+from+" q WHERE 1 = 0")
	if err != nil {
		return nil, "", c.source.translate(ctx, source.Parsing, "describe the query", err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, "", c.source.translate(ctx, source.Parsing, "describe the query", err)
	}
	var shape strings.Builder
	columns := make([]source.Column, len(types))
	for i, t := range types {
		nullable, known := t.Nullable()
		name := driverType(t.DatabaseTypeName())
		columns[i] = source.Column{Name: t.Name(), Type: name, Nullable: nullable || !known, Encoding: encodingOf(name)}
		fmt.Fprintf(&shape, "%q %s %t\n", t.Name(), t.DatabaseTypeName(), columns[i].Nullable)
	}
	for rows.Next() { // to the end of the result, so that the connection stays
		continue
	}
	return columns, shape.String(), c.source.translate(ctx, source.Parsing, "describe the query", rows.Err())
}

// resolve looks the table up in the catalogue. A query is described as it is.
func (c *session) resolve(ctx context.Context, q observer.Query) (relation, error) {
	r := relation{from: source.Subquery(q.SQL), linked: true, others: others{unknown: true}}
	if q.Table != "" {
		var err error
		if r, err = c.table(ctx, q.Table); err != nil {
			return relation{}, err
		}
	}
	c.unclean = c.unclean || r.linked
	columns, shape, err := c.probe(ctx, r.from)
	if err != nil {
		return relation{}, err
	}
	r.shape = shape
	if r.columns == nil {
		r.columns = columns
	}
	return r, nil
}
