package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// uniqueSQL returns the columns of each unique index, joined by the character
// 1. A primary key that is the rowid itself has no index.
const uniqueSQL = `
SELECT group_concat(coalesce(c.name, ''), char(1))
FROM pragma_index_list($1) AS i
JOIN pragma_index_info(i.name) AS c
WHERE i."unique" AND NOT i.partial
GROUP BY i.name
UNION ALL
SELECT group_concat(name, char(1))
FROM pragma_table_xinfo($1)
WHERE pk > 0
HAVING count(*) > 0`

// primaryKey returns its columns; none without one.
func (s session) primaryKey(ctx context.Context, r relation) ([]string, error) {
	t := source.Table{Name: r.name, View: r.view}
	err := s.look(ctx, &t, "")
	return t.Key, err
}

// namePrimaryKey is [source.NamePrimaryKey] for what was looked up.
func (s session) namePrimaryKey(ctx context.Context, err error, r relation, q observer.Query) error {
	return source.NamePrimaryKey(err, q, func() ([]string, error) { return s.primaryKey(ctx, r) })
}

// Describe finds out, for `validate`, whether the query can be polled and how
// well. A missing table or column is a [source.MissingError].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	r, err := s.session.describe(ctx, q)
	if err != nil {
		return source.Description{}, err
	}
	p, err := planFor(r, q, observer.Range{})
	if err != nil {
		return source.Description{}, source.Unfit(s.session.namePrimaryKey(ctx, err, r, q))
	}
	d := source.NewDescription(r.name, r.columns, p.selection)
	if d.KeyUnique, err = s.session.keyUnique(ctx, d.Key, r); err != nil {
		return d, err
	}
	order, err := s.session.keyOrder(ctx, r, q)
	if d.KeyOrdered = order != ""; err != nil || d.Timestamp == "" {
		return d, err
	}
	if d.OrderIndexed, err = s.session.orderIndexed(ctx, p); err != nil {
		return d, err
	}
	d.TimestampDate = strings.EqualFold(p.selection.Columns[p.selection.Timestamp].Type, "DATE")
	t := source.Table{Name: r.name, View: r.view}
	if err := s.session.look(ctx, &t, d.Timestamp); err != nil {
		return d, err
	}
	d.TimestampKept = t.Kept(d.Timestamp)
	d.Warnings, err = s.formWarnings(ctx, p)
	return d, err
}

// keyUnique asks the indexes first: one whose columns are all in the key
// guarantees it. Otherwise some rows are looked at, which can only disprove it.
func (s session) keyUnique(ctx context.Context, key []string, r relation) (source.Answer, error) {
	if r.name != "" && !r.view {
		indexes, err := column[string](ctx, s.db, uniqueSQL, r.name)
		if err != nil {
			return source.Unknown, s.translate(ctx, "read indexes", err)
		}
		for _, columns := range indexes {
			if subset(strings.Split(columns, "\x01"), key) {
				return source.Yes, nil
			}
		}
	}
	columns := fn.Each(key, func(name string) string { return "q." + source.Quote(name) })
	text := source.EqualKeysSQL(r.from, columns, columns, "count(*) > 1")
	equal, err := column[int](ctx, s.db, text)
	answer := source.Unknown
	if len(equal) > 0 {
		answer = source.No
	}
	return answer, s.overRows(ctx, "look for equal keys", err, step{sql: text})
}

func subset(columns, key []string) bool {
	return !slices.ContainsFunc(columns, func(name string) bool {
		return !slices.ContainsFunc(key, func(k string) bool { return strings.EqualFold(name, k) })
	})
}

// orderIndexed asks the planner, whose answer does not depend on the size of
// the table: a sort of the whole result is a "temp B-tree". The sort of the
// last terms alone, among equal timestamps, costs nothing.
func (s session) orderIndexed(ctx context.Context, p plan) (source.Answer, error) {
	unsorted, err := s.without(ctx, p.steps[len(p.steps)-1], wholeSort)
	if !unsorted {
		return source.No, err
	}
	return source.Yes, nil
}

// without reports whether the plan of a statement has no step that shows a text.
func (s session) without(ctx context.Context, step step, shown string) (bool, error) {
	lines, err := s.explain(ctx, step)
	return err == nil && !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, shown) }), err
}

// formWarnings looks whether all timestamps have a place in one order.
func (s *Source) formWarnings(ctx context.Context, p plan) ([]string, error) {
	w, err := s.writer(ctx, p, observer.Query{})
	if err != nil {
		return nil, err
	}
	name := p.selection.TimestampName()
	ts := "q." + source.Quote(name)
	other := ts + " IS NOT NULL"
	if w.form != "" {
		other = w.form.without(ts)
	}
	found, err := s.session.hasAny(ctx, p, other)
	switch {
	case err != nil:
		return nil, err
	case found && w.form == "":
		return []string{fmt.Sprintf("Column %s holds timestamps that are not understood; their rows will be poison.", name)}, nil
	case found:
		return []string{fmt.Sprintf("Column %s holds timestamps in %s, and others that are not; rows with such a one will be poison.", name, w.form)}, nil
	}
	for _, l := range w.layouts {
		if l.separator != w.layouts[0].separator || l.zoned != w.layouts[0].zoned {
			return []string{fmt.Sprintf("Column %s holds timestamps in several forms, which SQLite does not sort by time.", name)}, nil
		}
	}
	return nil, nil
}
