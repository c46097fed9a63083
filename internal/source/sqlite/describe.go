package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

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

// Describe finds out, for `validate`, whether the query can be polled and how
// well. A missing table or column is a [source.MissingError].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	r, err := s.describe(ctx, s.db, q)
	if err != nil {
		return source.Description{}, err
	}
	p, err := planFor(r, q, observer.Range{})
	if err != nil {
		return source.Description{}, source.Unfit(err)
	}
	d := source.NewDescription(r.name, r.columns, p.selection)
	if d.KeyUnique, err = s.keyUnique(ctx, d.Key, r); err != nil {
		return d, err
	}
	order, err := s.keyOrder(ctx, r, q)
	if d.KeyOrdered = order != ""; err != nil || d.Timestamp == "" {
		return d, err
	}
	if d.OrderIndexed, err = s.orderIndexed(ctx, p); err != nil {
		return d, err
	}
	d.Warnings, err = s.formWarnings(ctx, p)
	return d, err
}

// keyUnique asks the indexes first: one whose columns are all in the key
// guarantees it. Otherwise some rows are looked at, which can only disprove it.
func (s *Source) keyUnique(ctx context.Context, key []string, r relation) (source.Answer, error) {
	answer := source.Unknown
	if r.name != "" && !r.view {
		err := each(ctx, s.db, uniqueSQL, []any{r.name}, func(rows *sql.Rows) error {
			var columns string
			err := rows.Scan(&columns)
			if subset(strings.Split(columns, "\x01"), key) {
				answer = source.Yes
			}
			return err
		})
		if err != nil || answer == source.Yes {
			return answer, s.translate(ctx, "read indexes", err)
		}
	}
	columns := make([]string, len(key))
	for i, name := range key {
		columns[i] = "q." + source.Quote(name)
	}
	text := source.EqualKeysSQL(r.from, columns, columns, "count(*) > 1")
	err := each(ctx, s.db, text, nil, func(*sql.Rows) error {
		answer = source.No
		return nil
	})
	return answer, s.overRows(ctx, s.db, "look for equal keys", err, step{sql: text})
}

func subset(columns, key []string) bool {
	return !slices.ContainsFunc(columns, func(name string) bool {
		return !slices.ContainsFunc(key, func(k string) bool { return strings.EqualFold(name, k) })
	})
}

// orderIndexed asks the planner, whose answer does not depend on the size of
// the table: a sort of the whole result is a "temp B-tree". The sort of the
// last terms alone, among equal timestamps, costs nothing.
func (s *Source) orderIndexed(ctx context.Context, p plan) (source.Answer, error) {
	unsorted, err := s.without(ctx, p.steps[len(p.steps)-1], wholeSort)
	if !unsorted {
		return source.No, err
	}
	return source.Yes, nil
}

// without reports whether the plan of a statement has no step that shows a text.
func (s *Source) without(ctx context.Context, step step, shown string) (bool, error) {
	without := true
	err := each(ctx, s.db, explainSQL+step.sql, step.args, func(rows *sql.Rows) error {
		var id, parent, unused int
		var detail string
		err := rows.Scan(&id, &parent, &unused, &detail)
		without = without && !strings.Contains(detail, shown)
		return err
	})
	return without && err == nil, s.translate(ctx, "explain the query", err)
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
	found, err := s.hasAny(ctx, p, other)
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
