package sqlite

import (
	"context"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// indexesSQL returns the columns of each whole index in their order, and those of
// the primary key.
const indexesSQL = `
SELECT group_concat(coalesce(name, ''), char(1))
FROM (SELECT i.seq, x.name
      FROM pragma_index_list($1) AS i
      JOIN pragma_index_xinfo(i.name) AS x
      WHERE NOT i.partial AND x.key
      ORDER BY i.seq, x.seqno)
GROUP BY seq
UNION ALL
SELECT group_concat(name, char(1))
FROM (SELECT name FROM pragma_table_xinfo($1) WHERE pk > 0 ORDER BY pk)
HAVING count(*) > 0`

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	r, err := s.session.describe(ctx, q)
	if err != nil {
		return "", err
	}
	return s.session.keyOrder(ctx, r, q)
}

// keyOrder asks the planner as well: an index of another collation or direction
// is none, not even where only the last columns are to be sorted.
func (s session) keyOrder(ctx context.Context, r relation, q observer.Query) (string, error) {
	p, err := s.planByKey(ctx, r, q, observer.Range{ByKey: true})
	if err != nil || p.order == "" {
		return "", err
	}
	if served, err := s.without(ctx, p.steps[0], "TEMP B-TREE"); !served {
		return "", err
	}
	return p.order, nil
}

// planByKey has no steps where no index begins with the columns of the key. NULL
// comes before all keys here, so that no read that goes on leaves it out.
func (s session) planByKey(ctx context.Context, r relation, q observer.Query, in observer.Range) (plan, error) {
	selection, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, source.Unfit(s.namePrimaryKey(ctx, err, r, q))
	}
	p := plan{selection: selection, from: r.from, table: r.name, most: source.MaxRowBytes(q)}
	if !r.bindable(selection) {
		return p, nil
	}
	found, err := column[string](ctx, s.db, indexesSQL, r.name)
	indexes := fn.Each(found, func(columns string) []string { return strings.Split(columns, "\x01") })
	order := selection.KeyOrder(indexes)
	if err != nil || order == nil {
		return p, s.translate(ctx, "read indexes", err)
	}
	p.order = selection.OrderID(order, nil)
	w := p.statements(q, in)
	w.Order = order
	return p, source.Unfit(p.add(w, source.Statements.ByKey))
}

// bindable reports whether a key compares with the texts of its parts as its
// columns do. Those of views and queries need not have the affinity of their types.
func (r relation) bindable(s source.Selection) bool {
	return r.name != "" && !r.view && !slices.ContainsFunc(s.Key, func(i int) bool {
		return affinityOf(s.Columns[i].Type) == affinityNone
	})
}

// affinity is to what a column converts a text, as a bound is one, before it
// compares.
type affinity int

const (
	affinityNone affinity = iota // a number would not be found by its text
	affinityText
	affinityNumber
)

// affinityOf follows the rules of SQLite, in their order. ANY is none where the
// table is STRICT, which the catalogue of columns does not tell.
func affinityOf(declared string) affinity {
	has := func(part string) bool { return strings.Contains(strings.ToUpper(declared), part) }
	switch {
	case has("INT"):
		return affinityNumber
	case has("CHAR"), has("CLOB"), has("TEXT"):
		return affinityText
	case has("BLOB"), declared == "", strings.EqualFold(declared, "ANY"):
		return affinityNone
	}
	return affinityNumber
}

// bindOf returns a part of a key as the text that is bound. SQLite reads infinity as
// a number that is too large.
func bindOf(c source.Column, part string) (bind any, ok bool) {
	if sign, infinite := strings.CutSuffix(part, "Inf"); infinite && len(sign) == 1 && affinityOf(c.Type) == affinityNumber {
		return sign + "9e999", true
	}
	return part, true
}

// keyRule is for columns that keep values of any class: 1 and '1' are two of them.
func keyRule(declared string) observer.KeyRule {
	if affinityOf(declared) == affinityNone {
		return observer.KeyClass
	}
	return ""
}

// encodingOf is for columns that keep no number, and others. A BLOB is told from no text but
// by its mark.
func encodingOf(declared string) events.Encoding {
	if affinityOf(declared) == affinityText {
		return ""
	}
	return events.EncodingAny
}
