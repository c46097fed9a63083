package observer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func columns(pairs ...string) []observer.Column {
	var list []observer.Column
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, observer.Column{Name: pairs[i], Type: pairs[i+1]})
	}
	return list
}

func TestEncodeColumns(t *testing.T) {
	t.Parallel()
	equal(t, "text", observer.EncodeColumns(columns("order_id", "bigint", `a "b"`, "text")), `[["order_id","bigint"],["a \"b\"","text"]]`)
	equal(t, "text of none", observer.EncodeColumns(nil), "")
}

func TestColumnsOfTheSourceChange(t *testing.T) {
	t.Parallel()
	before := columns("id", "text", "qty", "integer")
	for name, test := range map[string]struct {
		after   []observer.Column
		named   []string // Columns that the configuration names from now on.
		refused []string
		kept    bool // What was remembered is remembered.
	}{
		"nothing":             {after: before, kept: true},
		"added":               {after: columns("id", "text", "qty", "integer", "note", "text")},
		"removed":             {after: columns("id", "text"), refused: []string{`column "qty" (integer) is missing`}},
		"retyped":             {after: columns("id", "text", "qty", "text"), refused: []string{`column "qty" was integer and is text`}},
		"both":                {after: columns("id", "bigint"), refused: []string{`"qty" (integer) is missing`, `"id" was text and is bigint`}},
		"renamed":             {after: columns("id", "text", "quantity", "integer"), refused: []string{`"qty"`}},
		"no columns are told": {after: nil, kept: true},
		"a type is not told":  {after: columns("id", "text", "qty", "")},
		"left out by us":      {after: columns("id", "text"), named: []string{"id"}},
		"named, and retyped":  {after: columns("id", "bigint"), named: []string{"id"}, refused: []string{`"id" was text and is bigint`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectChange)
			s.src.SetColumns(before...)
			s.put(0, 5)
			s.poll()
			cursor := s.db.Cursor(stream)
			equal(t, "remembered", cursor.Marks.Columns, observer.EncodeColumns(before))
			s.src.SetColumns(test.after...)
			s.spec.Query.Columns = test.named
			s.put(10, 5)
			_, err := s.tryPoll()
			equal(t, "refused", errors.Is(err, observer.ErrColumnsChanged), len(test.refused) > 0)
			if len(test.refused) > 0 {
				for _, want := range append(test.refused, "observerd observers accept orders") {
					equal(t, want+" in "+err.Error(), strings.Contains(err.Error(), want), true)
				}
				refused := s.db.Cursor(stream)
				equal(t, "marks", marks(refused), marks(cursor))
				equal(t, "remembered", refused.Marks.Columns, cursor.Marks.Columns)
				s.acceptsColumns(test.after)
				return
			}
			want := observer.EncodeColumns(test.after)
			if test.kept {
				want = cursor.Marks.Columns
			}
			equal(t, "remembered then", s.db.Cursor(stream).Marks.Columns, want)
			equal(t, "events", len(s.story()), 10)
		})
	}
}

// A stream that has no order of its members yet, as after an upgrade, reads them as the source
// has them, and in that order from then on.
func TestStreamKeepsTheOrderOfItsMembers(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetColumns(columns("qty", "integer", "id", "text")...)
	s.put(0, 5)
	s.poll()
	asked := func() string {
		src := &orderOf{Source: s.src}
		if _, err := s.observer().Poll(t.Context(), src, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
		return src.order
	}
	const order = `["qty","id"]`
	equal(t, "the second poll", asked(), order)
	s.db.Reset(stream)
	equal(t, "after a reset", asked(), order)
	s.setMarks(func(m *observer.Marks) { m.Order = "" })
	equal(t, "of an earlier version", asked(), "")
	equal(t, "once a poll was made", asked(), order)
	equal(t, "after the rows were forgotten", s.db.Cursor(stream).Marks.Reset(true, true).Order, "")
}

// orderOf notes the order that reads ask for.
type orderOf struct {
	*observertest.Source
	order string
}

// Read implements [observer.Source].
func (s *orderOf) Read(ctx context.Context, q observer.Query, r observer.Range) (observer.Rows, error) {
	s.order = q.Order
	return s.Source.Read(ctx, q, r)
}

// An added column is remembered although no row has changed, so that its
// removal is noticed.
func TestAddedColumnIsRememberedAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 5)
	s.src.SetColumns(columns("id", "text")...)
	s.poll()
	s.src.SetColumns(columns("id", "text", "note", "text")...)
	s.poll()
	s.src.SetColumns(columns("id", "text")...)
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrColumnsChanged) {
		t.Fatalf("got %v", err)
	}
}

// acceptsColumns accepts the columns that were refused: those, and no others.
func (s *stage) acceptsColumns(after []observer.Column) {
	s.t.Helper()
	s.db.Accept(stream)
	s.src.SetColumns(columns("id", "uuid")...)
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrColumnsChanged) {
		s.t.Fatalf("columns that nobody has accepted: %v", err)
	}
	s.src.SetColumns(after...)
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrColumnsChanged) {
		s.t.Fatalf("columns that were accepted, and not those of the last refusal: %v", err)
	}
	s.db.Accept(stream)
	s.poll()
	if c := s.db.Cursor(stream); c.Marks.Columns != observer.EncodeColumns(after) || c.Refusal+c.Accepted != "" {
		s.t.Fatalf("accepted: %+v", c)
	}
}
