package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const indexesSQL = `
SELECT i.indisunique AND i.indimmediate,
       i.indpred IS NULL,
       k.columns, k.plain, k.schemas
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam
CROSS JOIN LATERAL (
  SELECT string_agg(coalesce(a.attname, ''), E'\x01' ORDER BY k.n) AS columns,
         string_agg(coalesce(s.nspname, ''), E'\x01' ORDER BY k.n) AS schemas,
         bool_and(i.indoption[k.n - 1] = 0 AND o.opcdefault AND i.indcollation[k.n - 1] IN (0, a.attcollation)
                  AND s.oid IS NOT NULL AND has_schema_privilege(s.oid, 'USAGE')) AS plain
    FROM generate_series(1, i.indnkeyatts) AS k(n)
    JOIN pg_opclass o ON o.oid = i.indclass[k.n - 1]
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n - 1]
    LEFT JOIN pg_amop m ON m.amopfamily = o.opcfamily AND m.amopstrategy = 4
                       AND m.amoplefttype = o.opcintype AND m.amoprighttype = o.opcintype
    LEFT JOIN pg_operator r ON r.oid = m.amopopr AND r.oprname = '>='
    LEFT JOIN pg_namespace s ON s.oid = r.oprnamespace) AS k
WHERE i.indrelid = $1::oid AND i.indisvalid AND i.indisready AND m.amname = 'btree'`

// securedSQL names the tables on which policies choose the rows that this account sees.
const securedSQL = `
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY ($1::oid[]) AND row_security_active(c.oid)
ORDER BY c.oid`

type index struct {
	unique, whole bool
	columns       []string // "" for an expression
	// plain says that it has the order of an ORDER BY that says no more than columns,
	// and that >= of schemas compares each column by it.
	plain   bool
	schemas []string
}

// Describe finds out, for `validate`, whether the query can be polled and how
// well. A missing table or column is a [source.MissingError].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	return inSession(ctx, s, func(c *session) (source.Description, error) {
		p, err := c.plan(ctx, q, observer.Range{})
		if err == nil {
			err = c.nameTypes(ctx, p.relation)
		}
		if err != nil {
			return source.Description{}, err
		}
		return c.description(ctx, p)
	})
}

func (c *session) description(ctx context.Context, p plan) (source.Description, error) {
	// The plan alone does not need the right to SELECT; running it does.
	text := p.steps[0].sql
	if _, err := c.answer(ctx, "try the query", question{sql: "SELECT 1 FROM (" + text + "\n) q LIMIT 0", runs: text, byPath: true}); err != nil {
		return source.Description{}, err
	}
	r := p.relation
	d := source.NewDescription(r.name, r.columns, p.selection)
	var err error
	if d.Risks, err = c.pathRisks(ctx, r); err != nil {
		return d, err
	}
	indexes, err := c.indexes(ctx, r)
	if err != nil {
		return source.Description{}, err
	}
	if d.KeyUnique, err = c.keyUnique(ctx, d.Key, r, indexes); err != nil {
		return d, err
	}
	if d.Warnings, err = c.secured(ctx, r); err != nil {
		return d, err
	}
	d.Warnings = append(d.Warnings, c.moneyWarnings(p)...)
	d.KeyOrdered, d.KeyOneWay = keyOrder(r, p.selection, indexes) != nil, keyOneWay(r, p.selection)
	if d.Timestamp == "" {
		return d, nil
	}
	if r.indexed() {
		d.OrderIndexed = ordered(indexes, d.Timestamp)
	}
	d.TimestampDate = r.types[slices.IndexFunc(r.columns, func(c source.Column) bool { return c.Name == d.Timestamp })] == pgtype.DateOID
	if r.oid != "" {
		t := source.Table{View: r.kind != 'r' && r.kind != 'p'}
		if err := c.times(ctx, r.oid, map[string]*source.Table{r.oid: &t}); err != nil {
			return d, err
		}
		d.TimestampKept = t.Kept(d.Timestamp)
	}
	l, err := c.look(ctx, nil, "")
	if err == nil {
		p.relation.transparent, err = c.seesThrough(ctx, r)
	}
	if err == nil {
		l.others, _, err = c.others(ctx, p)
	}
	d.HorizonExact, d.Warnings = l.exact(), append(l.warnings(), d.Warnings...)
	return d, err
}

// The types money and money[], which the driver does not name.
const (
	moneyOID  = 790
	moneysOID = 791
)

// moneyWarnings name a column whose text, sign and decimals are those of lc_monetary.
func (c *session) moneyWarnings(p plan) []string {
	i := slices.IndexFunc(p.types, func(oid uint32) bool { return oid == moneyOID || oid == moneysOID })
	if i < 0 || c.source.money != defaultMoney {
		return nil
	}
	return []string{fmt.Sprintf("Column %s is money, which is read with a dollar sign and two decimals, whatever lc_monetary says. "+
		"Write lc_monetary=NAME into the URL for another currency, as SHOW lc_monetary names it where the rows are written.", p.selection.Columns[i].Name)}
}

// secured warns of row security on the table, or on those whose columns a query returns.
// What a view hides, by the rights of its owner, is not looked for.
func (c *session) secured(ctx context.Context, r relation) (warnings []string, err error) {
	rows, err := c.rows(ctx, "look for row security", securedSQL, r.tableList())
	for _, row := range rows {
		warnings = append(warnings, fmt.Sprintf("Row security applies to this account on %s: rows that no policy shows are not read, and a row that a policy hides later is reported as gone. "+
			"Unless that is meant, give the account a policy that shows all rows, or BYPASSRLS.", row[0]))
	}
	return warnings, err
}

// nameTypes fills in the types of a query's columns, which the server sends as
// numbers.
func (c *session) nameTypes(ctx context.Context, r relation) error {
	if r.oid != "" {
		return nil
	}
	oids := fn.Each(r.types, func(oid uint32) string { return strconv.FormatUint(uint64(oid), 10) })
	rows, err := c.rowsByPath(ctx, "name the types",
		"SELECT pg_catalog.format_type(t.oid, NULL) FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, n) ORDER BY t.n",
		"{"+strings.Join(oids, ",")+"}")
	if err != nil {
		return err
	}
	for i, row := range rows {
		r.columns[i].Type = string(row[0])
	}
	return nil
}

func (c *session) indexes(ctx context.Context, r relation) ([]index, error) {
	if !r.indexed() {
		return nil, nil
	}
	rows, err := c.rows(ctx, "read indexes", indexesSQL, r.oid)
	if err != nil {
		return nil, err
	}
	return fn.Each(rows, func(row [][]byte) index {
		return index{
			unique:  yes(row[0]),
			whole:   yes(row[1]),
			columns: strings.Split(string(row[2]), "\x01"),
			plain:   yes(row[3]),
			schemas: strings.Split(string(row[4]), "\x01"),
		}
	}), nil
}

// primaryKey returns its columns; none without one.
func (c *session) primaryKey(ctx context.Context, r relation) ([]string, error) {
	if !r.indexed() {
		return nil, nil
	}
	keys, err := c.primaryKeys(ctx, r.oid)
	return keys[r.oid], err
}

// keyUnique asks the indexes first: one whose columns are all in the key
// guarantees it. Otherwise some rows are looked at, which can only disprove it.
func (c *session) keyUnique(ctx context.Context, key []string, r relation, indexes []index) (source.Answer, error) {
	for _, i := range indexes {
		if i.unique && i.whole && !r.inherited() && source.Covers(key, i.columns) {
			return source.Yes, nil
		}
	}
	columns := fn.Each(key, func(name string) string { return "q." + source.Quote(name) })
	text := source.EqualKeysSQL(r.from, columns, columns, "pg_catalog.count(*) OPERATOR(pg_catalog.>) 1")
	answers, err := c.ask(ctx, "look for equal keys", question{sql: text, runs: text, byPath: true})
	switch {
	case hasState(err, queryCanceled):
		return source.Unknown, nil
	case err != nil:
		return source.Unknown, err
	case len(answers[0].rows) > 0:
		return source.No, nil
	}
	return source.Unknown, nil
}

// queryCanceled is the SQLSTATE of a statement that took too long.
const queryCanceled = "57014"

// ordered reports whether an index begins with the timestamp. The columns of the
// key behind it are welcome, but PostgreSQL sorts equal timestamps on its way.
func ordered(indexes []index, timestamp string) source.Answer {
	for _, i := range indexes {
		if i.whole && i.columns[0] == timestamp {
			return source.Yes
		}
	}
	return source.No
}
