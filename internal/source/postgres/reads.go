package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
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

// reachedSQL begins a statement about the relation c: it lists what a read of it reads, as far as
// the catalogue has that, itself among them. What the rows of a materialized view were made of is
// not read.
const reachedSQL = `
WITH RECURSIVE reached AS (
  SELECT c.oid
   UNION
  SELECT n.oid
    FROM reached r
   CROSS JOIN LATERAL (
     SELECT i.inhrelid AS oid
       FROM pg_catalog.pg_class p
       JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) p.oid
      WHERE p.oid OPERATOR(pg_catalog.=) r.oid AND p.relhassubclass
      UNION ALL
     SELECT d.refobjid
       FROM pg_catalog.pg_class v
       JOIN pg_catalog.pg_rewrite w ON w.ev_class OPERATOR(pg_catalog.=) v.oid AND w.ev_type OPERATOR(pg_catalog.=) '1'
       JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) w.oid
                                  AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      WHERE v.oid OPERATOR(pg_catalog.=) r.oid AND v.relkind OPERATOR(pg_catalog.=) 'v') n
)`

// hiddenSQL reports whether EXPLAIN has to look through a view or a parent, for one of two
// reasons. Others bring rows, unless the plan leaves them out: foreign tables, materialized views,
// replication. Or what is read may be replaced without another stamp: policies, and functions and
// operators that are not the server's own, may read anything, and so may the conditions of a domain.
// A volatile function of the server, such as set_config or query_to_xml, may change the settings of
// the session, or run any statement; so may the stable ones for XML, and those for JSON may call a cast,
// or the conditions of a domain, that are somebody's.
const hiddenSQL = `
SELECT EXISTS (` + reachedSQL + `
  SELECT 1
    FROM reached r
    JOIN pg_class c ON c.oid = r.oid
   WHERE c.relrowsecurity OR NOT c.relkind = ANY ('{r,p,v}') OR ` + replicatedSQL + `
      OR c.relkind = 'v' AND EXISTS (
        SELECT FROM pg_rewrite w
         WHERE w.ev_class = c.oid AND w.ev_type = '1'
           AND (strpos(w.ev_action::text, '{JSON') > 0 OR EXISTS (
             SELECT FROM regexp_matches(w.ev_action::text, ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g') AS m (found) JOIN pg_proc f ON f.oid = m.found[1]::oid
              WHERE f.provolatile = 'v' OR f.provolatile = 's' AND (f.proname LIKE 'pg\_input\_%' OR f.proargtypes::oid[] || f.prorettype && '{json,jsonb,xml}'::regtype[]::oid[])) OR EXISTS (
             SELECT FROM pg_depend d LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
              WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                AND d.refclassid <> ALL ('{pg_class,pg_collation,pg_constraint}'::regclass[]::oid[]) AND t.typtype IS DISTINCT FROM 'e')))
)
  FROM pg_class c
 WHERE c.oid = $1::oid`

// seesThrough reports whether the stamp of a view or a parent says all of what it reads.
func (c *session) seesThrough(ctx context.Context, r relation) (bool, error) {
	if r.alone() || r.oid == "" {
		return false, nil
	}
	rows, err := c.rows(ctx, "look through the relation", hiddenSQL, r.oid)
	return len(rows) == 1 && !yes(rows[0][0]), err
}

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

// seen are the tables that a horizon has found; none where each read has to ask.
type seen struct {
	tables []table
	at     time.Time
}

func inquiry(q observer.Query) string { return q.Stream + "\x00" + q.Table + q.SQL }

// see remembers them for the reads that follow, unless those may need few partitions of them,
// or LOCK TABLE would leave out a view that may be replaced meanwhile.
func (s *Source) see(q observer.Query, just seen) {
	if slices.ContainsFunc(just.tables, func(t table) bool { return t.kind == 'p' || t.kind == view }) {
		just.tables = nil
	}
	s.seen.Store(inquiry(q), just)
}

func (s *Source) justSeen(q observer.Query) []table {
	v, _ := s.seen.Load(inquiry(q))
	if just, ok := v.(seen); ok && time.Since(just.at) < freshFor {
		return just.tables
	}
	return nil
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

// alone reports whether it reads nothing but itself, of which the catalogue has said all.
func (r relation) alone() bool {
	return r.kind == 'r' && !r.policies && !r.parent || r.kind == foreignTable || r.kind == materialized
}

// fixed reports whether nothing of what it reads can be replaced without another stamp. A query,
// policies, and what is hidden behind a view are explained each time.
func (r relation) fixed() bool { return r.alone() || r.transparent }

// others asks what else brings the rows of a read, and returns the tables that it has found.
func (c *session) others(ctx context.Context, p plan) (others, []table, error) {
	if p.relation.fixed() {
		return p.relation.ownOthers(), nil, nil
	}
	found, err := c.reads(ctx, "look through the query", p.steps)
	return othersOf(found), found.tables, err
}

// ownOthers are those of one that is fixed.
func (r relation) ownOthers() others {
	if r.transparent {
		return others{}
	}
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
