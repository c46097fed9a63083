package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/fn"
)

// table is one of the relations that a query reads, views among them.
type table struct {
	name string // quoted
	kind byte
	// readable says that we may lock it, for which the right to read some columns
	// does not suffice.
	readable   bool
	replicated bool // see replicatedSQL
}

// tablesSQL lists what the transaction has locked, other than system tables:
// EXPLAIN locks what the query would read, whatever it is behind: views, policies,
// children, partitions that the planner does not rule out, functions that it puts
// into the query.
const tablesSQL = `
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind, has_table_privilege(c.oid, 'SELECT'), ` + replicatedSQL + `
FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
  AND c.oid >= 16384 AND c.relkind = ` + kinds + `
ORDER BY c.oid`

// reads is what steps read.
type reads struct {
	tables []table
	// function is one that returns rows, and may read anything; or empty.
	function string
}

// reads lets the planner say what is read; all of it is one transaction's,
// in which nothing else is locked.
func (c *session) reads(ctx context.Context, operation string, steps []step) (found reads, err error) {
	questions := fn.Each(steps, func(s step) question {
		return question{sql: explainSQL + s.plain, params: s.params, runs: s.plain, byPath: true}
	})
	answers, err := c.ask(ctx, operation, append(questions, question{sql: tablesSQL})...)
	if err != nil {
		return reads{}, err
	}
	plans, tables := answers[:len(answers)-1], answers[len(answers)-1]
	for _, a := range plans {
		top, err := parsePlan(a.rows)
		if err != nil {
			return reads{}, err
		}
		found.function = cmp.Or(found.function, top.function())
	}
	for _, row := range tables.rows {
		found.tables = append(found.tables, table{
			name: string(row[0]), kind: row[1][0], readable: yes(row[2]), replicated: yes(row[3]),
		})
	}
	return found, nil
}

// function names a function whose rows are read, or is empty. Those of the server
// itself make rows of their arguments; of several in one item the plan says no
// name.
func (n explained) function() string {
	if n.Kind == "Function Scan" && n.Schema != "pg_catalog" {
		if n.Function == "" {
			return "ROWS FROM (…)"
		}
		return n.Schema + "." + n.Function
	}
	for _, child := range n.Plans {
		if name := child.function(); name != "" {
			return name
		}
	}
	return ""
}

// others names what brings rows beside the transactions of this database, or dates
// them otherwise: of each sort the first relation or function that is read. All
// are empty for a query that reads nothing of these.
type others struct{ foreign, materialized, replicated, function string }

// alone reports whether it reads nothing but itself, of which the catalogue has said
// all. A view, a query, a parent and policies are planned each time, as any
// of them may be replaced.
func (r relation) alone() bool {
	return r.kind == 'r' && !r.policies && !r.parent || r.kind == foreignTable || r.kind == materialized
}

// others asks what else brings the rows of a read.
func (c *session) others(ctx context.Context, p plan) (others, error) {
	if p.relation.alone() {
		return p.relation.ownOthers(), nil
	}
	found, err := c.reads(ctx, "look through the query", p.steps)
	return othersOf(found), err
}

// ownOthers are those of one that is alone.
func (r relation) ownOthers() others {
	return othersOf(reads{tables: []table{{name: r.name, kind: r.kind, replicated: r.replicated}}})
}

func othersOf(found reads) others {
	o := others{function: found.function}
	for _, t := range found.tables {
		switch {
		case t.kind == foreignTable:
			o.foreign = cmp.Or(o.foreign, t.name)
		case t.kind == materialized:
			o.materialized = cmp.Or(o.materialized, t.name)
		case t.replicated:
			o.replicated = cmp.Or(o.replicated, t.name)
		}
	}
	return o
}

// warnings says what the overlap has to be longer than.
func (o others) warnings() []string {
	var w []string
	for _, one := range []struct{ name, text string }{
		{o.foreign, "%s is a foreign table. The transactions of its server are not visible here: the horizon is the clock less the overlap, which must be longer than those transactions."},
		{o.materialized, "%s is a materialized view, which shows rows when it is refreshed: the horizon is the clock less the overlap, which has to be longer than the time between two refreshes."},
		{o.replicated, "%s is filled by logical replication, which brings rows later than they are dated: the horizon is the clock less the overlap, which has to be longer than the transactions over there and the delay of the replication."},
		{o.function, "The rows of %s come from a function, and what it reads is unknown: the horizon is the clock less the overlap, which must be longer than any transaction that writes there."},
	} {
		if one.name != "" {
			w = append(w, fmt.Sprintf(one.text, one.name))
		}
	}
	return w
}
