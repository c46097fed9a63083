package oracle

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// An index on an expression has columns without a name. One on a column
// with time zones is such: it is ordered by the instants in UTC.
const (
	tablesSQL  = "SELECT TO_CHAR(t.NUM_ROWS) FROM ALL_TABLES t WHERE t.OWNER = :1 AND t.TABLE_NAME = :2"
	indexesSQL = `SELECT i.OWNER || '.' || i.INDEX_NAME, i.UNIQUENESS, i.INDEX_TYPE, i.STATUS, i.VISIBILITY, i.INDEX_NAME
FROM ALL_INDEXES i
WHERE i.TABLE_OWNER = :1 AND i.TABLE_NAME = :2`
	indexColumnsSQL = `SELECT c.INDEX_OWNER || '.' || c.INDEX_NAME, c.COLUMN_NAME
FROM ALL_IND_COLUMNS c
WHERE c.TABLE_OWNER = :1 AND c.TABLE_NAME = :2
ORDER BY c.INDEX_OWNER, c.INDEX_NAME, c.COLUMN_POSITION`
	indexExpressionsSQL = `SELECT e.INDEX_OWNER || '.' || e.INDEX_NAME, e.COLUMN_EXPRESSION
FROM ALL_IND_EXPRESSIONS e
WHERE e.TABLE_OWNER = :1 AND e.TABLE_NAME = :2 AND e.COLUMN_POSITION = 1`
)

type index struct {
	name    string // with the owner's
	bare    string // without
	unique  bool
	columns []string
	first   string // the expression by which it begins; empty for a column
	// plain says that it is of columns alone, in ascending order throughout the
	// table, and that the optimizer may use it. rows says that it is the table.
	plain, rows bool
}

// Describe finds out, for `validate`, whether the query can be polled and how
// well. A missing table or column is a [source.MissingError].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	var r relation
	d, err := inSession(ctx, s, func(c *session) (source.Description, error) {
		p, err := c.plan(ctx, q, observer.Range{})
		if err != nil {
			return source.Description{}, err
		}
		r = p.relation
		return c.description(ctx, q, p)
	})
	if err != nil || d.Timestamp == "" {
		return d, err
	}
	a, err := s.activity(ctx, r)
	d.HorizonExact, d.Warnings = a.exact(), a.warnings()
	if q.Overlap <= 0 {
		d.Warnings = append(d.Warnings, r.others.warnings()...)
	}
	if w := s.connector.Warning(); w != nil {
		d.Warnings = append(d.Warnings, "The session could not be set up as it should be: "+w.Error()+".")
	}
	return d, err
}

func (c *session) description(ctx context.Context, q observer.Query, p plan) (source.Description, error) {
	r := p.relation
	d := source.NewDescription(r.name, r.columns, p.selection)
	indexes, isTable, err := c.indexes(ctx, r)
	if err != nil {
		return source.Description{}, err
	}
	if d.KeyUnique, err = c.keyUnique(ctx, p, indexes); err != nil {
		return d, err
	}
	order, err := c.keyOrder(ctx, q, p, indexes)
	if d.KeyOrdered = order.Parts != nil; err != nil || d.Timestamp == "" {
		return d, err
	}
	if isTable {
		d.OrderIndexed = ordered(indexes, d.Timestamp)
		var t source.Table
		err = c.times(ctx, r.owner, r.table, map[string]*source.Table{r.table: &t},
			func(_ string, column source.TimeColumn) source.Answer { return ordered(indexes, column.Name) })
		d.TimestampKept = t.Kept(d.Timestamp)
	}
	return d, err
}

// indexes returns the B-tree indexes, and whether it is a table that has them.
func (c *session) indexes(ctx context.Context, r relation) ([]index, bool, error) {
	if r.table == "" {
		return nil, false, nil
	}
	tables, err := c.rows(ctx, "look up the table", tablesSQL, r.owner, r.table)
	if err != nil || len(tables) == 0 {
		return nil, false, err
	}
	rows, err := c.rows(ctx, "read indexes", indexesSQL, r.owner, r.table)
	if err != nil {
		return nil, false, err
	}
	columns, err := c.rows(ctx, "read indexes", indexColumnsSQL, r.owner, r.table)
	if err != nil {
		return nil, false, err
	}
	var indexes []index
	for _, row := range rows {
		kind := row[2]
		if row[3] == "UNUSABLE" || !strings.HasSuffix(kind, "NORMAL") && !strings.HasPrefix(kind, "IOT") {
			continue
		}
		i := index{name: row[0], bare: row[5], unique: row[1] == "UNIQUE", rows: kind == "IOT - TOP"}
		// One in partitions, each with an order of its own, has the status N/A.
		i.plain = (kind == "NORMAL" || i.rows) && row[3] == "VALID" && row[4] == "VISIBLE"
		for _, column := range columns {
			if column[0] == row[0] {
				i.columns = append(i.columns, column[1])
			}
		}
		if len(i.columns) > 0 {
			indexes = append(indexes, i)
		}
	}
	if slices.ContainsFunc(rows, func(row []string) bool { return strings.HasPrefix(row[2], "FUNCTION") }) {
		err = c.expressions(ctx, r, indexes)
	}
	return indexes, true, err
}

// primaryKey returns its columns; none without one, and for a view, a query and a link.
func (c *session) primaryKey(ctx context.Context, r relation) ([]string, error) {
	if r.table == "" {
		return nil, nil
	}
	keys, err := c.primaryKeys(ctx, r.owner, r.table)
	return keys[r.table], err
}

// expressions fills in what the indexes on expressions begin with.
func (c *session) expressions(ctx context.Context, r relation, indexes []index) error {
	rows, err := c.rows(ctx, "read indexes", indexExpressionsSQL, r.owner, r.table)
	for _, row := range rows {
		for i := range indexes {
			if indexes[i].name == row[0] {
				indexes[i].first = row[1]
			}
		}
	}
	return err
}

// keyUnique asks the indexes first: one whose columns are all in the key
// guarantees it. Otherwise some rows are looked at, which can only disprove it.
func (c *session) keyUnique(ctx context.Context, p plan, indexes []index) (source.Answer, error) {
	key := p.selection.KeyNames()
	for _, i := range indexes {
		if i.unique && source.Covers(key, i.columns) {
			return source.Yes, nil
		}
	}
	items := make([]string, len(key))
	for n, i := range p.selection.Key {
		items[n] = selected(p.kinds[i], "q."+source.Quote(key[n]))
	}
	rows, err := c.small(ctx, source.Reading, "look for equal keys", fmt.Sprintf("SELECT %s FROM %s q WHERE ROWNUM <= %d", strings.Join(items, ", "), p.relation.from, source.SampleRows))
	switch {
	case observer.ClassOf(err) == observer.ClassTimeout && ctx.Err() == nil:
		return source.Unknown, nil
	case err != nil:
		return source.Unknown, err
	}
	seen := make(map[string]bool, len(rows))
	for _, row := range rows {
		k := observer.JoinKey(row)
		if seen[k] {
			return source.No, nil
		}
		seen[k] = true
	}
	return source.Unknown, nil
}

// ordered reports whether an index begins with the timestamp.
func ordered(indexes []index, timestamp string) source.Answer {
	for _, i := range indexes {
		if i.columns[0] == timestamp || i.first == "SYS_EXTRACT_UTC("+source.Quote(timestamp)+")" {
			return source.Yes
		}
	}
	return source.No
}

// tableRows is what the statistics say of a table's size; 0 where they do not.
func (c *session) tableRows(ctx context.Context, owner, table string) (int, error) {
	rows, err := c.rows(ctx, "read the size of a table", tablesSQL, owner, table)
	if err != nil || len(rows) == 0 || rows[0][0] == "" {
		return 0, err
	}
	return strconv.Atoi(rows[0][0])
}
