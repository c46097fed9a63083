package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// indexesSQL selects all columns because each server has some of its own, which say
// whether the index may be used.
const indexesSQL = `
SELECT *
FROM information_schema.statistics
WHERE table_schema %s AND table_name %s
ORDER BY table_name, index_name, seq_in_index`

type index struct {
	name    string
	unique  bool
	columns []string // "" for an expression
	// ordered says that the columns are indexed whole and ascending, in a tree, and that
	// the server may use the index.
	ordered bool
}

func (i index) primary() bool { return i.name == "PRIMARY" }

// Describe finds out, for `validate`, whether the query can be polled and how
// well. A missing table or column is a [source.MissingError].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	d, err := inSession(ctx, s, func(c *session) (source.Description, error) {
		p, err := c.plan(ctx, q, observer.Range{})
		if err != nil {
			return source.Description{}, err
		}
		return c.description(ctx, p)
	})
	if err != nil || d.Timestamp == "" {
		return d, err
	}
	a, err := s.activity(ctx)
	if err != nil {
		return d, err
	}
	d.HorizonExact = !a.inexact
	d.Warnings = append(d.Warnings, a.warnings...)
	return d, nil
}

func (c *session) description(ctx context.Context, p plan) (source.Description, error) {
	if err := checkKey(p.selection); err != nil {
		return source.Description{}, source.Unfit(err)
	}
	// The catalogue alone does not need the right to SELECT; running it does.
	if _, err := c.try(ctx, "try the query", "", p.steps[0].sql+"\nLIMIT 0"); err != nil {
		return source.Description{}, err
	}
	r := p.relation
	d := source.NewDescription(r.name, r.columns, p.selection)
	d.Warnings = r.warnings()
	indexes, err := c.indexes(ctx, r)
	if err != nil {
		return source.Description{}, err
	}
	if d.KeyUnique, err = c.keyUnique(ctx, p, indexes); err != nil {
		return d, err
	}
	d.KeyOrdered = keyOrder(r, p.selection, indexes).Parts != nil
	if d.Timestamp == "" {
		return d, nil
	}
	if r.base {
		d.OrderIndexed = ordered(indexes, d.Order(), strings.EqualFold(r.engine, "InnoDB"))
		var t source.Table
		_, err = c.times(ctx, r, map[string]*source.Table{r.table: &t}, map[string][]index{r.table: indexes})
		d.TimestampKept = t.Kept(d.Timestamp)
	}
	d.TimestampDate = p.selection.Columns[p.selection.Timestamp].Type == "date"
	return d, err
}

// warnings says what the engine of a table does not give.
func (r relation) warnings() []string {
	if !r.base || r.engine == "" || strings.EqualFold(r.engine, "InnoDB") {
		return nil
	}
	return []string{fmt.Sprintf("Table %s is of the engine %s: a read of it sees no snapshot, and may hold up who writes.", r.name, r.engine)}
}

func (c *session) indexes(ctx context.Context, r relation) ([]index, error) {
	if !r.base {
		return nil, nil
	}
	found, err := c.look(ctx, "read indexes", indexesSQL, r)
	if err == nil && len(found.rows) == 0 {
		err = c.lockWarned(ctx, "read indexes")
	}
	if err != nil {
		return nil, err
	}
	return indexesOf(found)[r.table], nil
}

func (c *session) primaryKey(ctx context.Context, r relation) ([]string, error) {
	indexes, err := c.indexes(ctx, r)
	return primaryKey(indexes), err
}

// primaryKey returns the columns of the one among the indexes; none without one.
func primaryKey(indexes []index) []string {
	primary, _ := fn.Find(indexes, index.primary)
	return primary.columns
}

// indexesOf reads the rows of indexesSQL, of any server, by the names of the tables.
func indexesOf(found result) map[string][]index {
	all := make(map[string][]index)
	for _, row := range found.rows {
		cells := make(map[string]string, len(row))
		for i, name := range found.columns {
			cells[strings.ToLower(name)] = string(row[i])
		}
		table := cells["table_name"]
		indexes := all[table]
		if last := len(indexes) - 1; last < 0 || indexes[last].name != cells["index_name"] {
			indexes = append(indexes, index{name: cells["index_name"], unique: cells["non_unique"] == "0", ordered: true})
		}
		i := &indexes[len(indexes)-1]
		i.columns = append(i.columns, cells["column_name"])
		i.ordered = i.ordered && cells["index_type"] == "BTREE" && cells["collation"] == "A" && cells["sub_part"] == "" && cells["expression"] == "" &&
			cells["comment"] != "disabled" && cells["ignored"] != "YES" && cells["is_visible"] != "NO"
		all[table] = indexes
	}
	return all
}

// keyUnique asks the indexes first: one whose columns are all in the key
// guarantees it. Otherwise some rows are looked at, which can only disprove it.
// They are compared byte by byte, as their events are, and not as a collation
// does that takes "a" for "A".
func (c *session) keyUnique(ctx context.Context, p plan, indexes []index) (source.Answer, error) {
	key := p.selection.KeyNames()
	for _, i := range indexes {
		if i.unique && source.Covers(key, i.columns) {
			return source.Yes, nil
		}
	}
	columns, names := make([]string, len(key)), make([]string, len(key))
	for i, name := range key {
		names[i] = fmt.Sprintf("k%d", i)
		selected := p.kinds[p.selection.Key[i]].selected("q." + quote(name))
		columns[i] = "CAST(" + selected + " AS BINARY) AS " + names[i]
	}
	found, err := c.try(ctx, "look for equal keys", "", source.EqualKeysSQL(p.relation.from, columns, names, "COUNT(*) > 1"))
	switch {
	case observer.ClassOf(err) == observer.ClassTimeout && !c.broken:
		return source.Unknown, nil
	case err != nil:
		return source.Unknown, err
	case len(found.rows) > 0:
		return source.No, nil
	}
	return source.Unknown, nil
}

// ordered reports whether an index serves the whole order: the server cannot sort
// equal timestamps on its way. InnoDB's indexes end with the primary key.
func ordered(indexes []index, order []string, innodb bool) source.Answer {
	var primary []string
	if innodb {
		primary = primaryKey(indexes)
	}
	for _, i := range indexes {
		columns := i.columns
		if !i.primary() {
			columns = append(slices.Clone(columns), primary...)
		}
		if i.ordered && len(columns) >= len(order) && slices.Equal(columns[:len(order)], order) {
			return source.Yes
		}
	}
	return source.No
}
