package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// objectName names anything in a schema.
type objectName struct{ owner, name string }

// column is a column of a table. It keeps its position when others are dropped.
type column struct {
	name     string
	typ      dataType
	nullable bool
	dropped  bool
	// def is written where INSERT names no value, preset is its text.
	def    expr
	preset string
}

// table is a table with its rows.
type table struct {
	objectName
	// materialized says that it is a materialized view, which is never refreshed.
	materialized bool
	// definition is replaced, never changed, so that a statement keeps the one
	// that it was compiled with.
	definition atomic.Pointer[tableDefinition]

	mu   sync.Mutex // guards the rows and their indexes
	heap []*version
	// lastID numbers the rows.
	lastID uint64
}

type tableDefinition struct {
	columns []column
	indexes []*index
	// analyzed is NUM_ROWS of the catalogue, or -1.
	analyzed int64
}

func (t *table) def() *tableDefinition { return t.definition.Load() }

func (d *tableDefinition) column(name string) int {
	return slices.IndexFunc(d.columns, func(c column) bool { return c.name == name && !c.dropped })
}

// live returns the rows as they are, for a reader that filters them by what it
// sees.
func (t *table) live() []*version {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heap[:len(t.heap):len(t.heap)]
}

// within returns the entries of an index in a span, as they are now.
func (t *table) within(x *index, s *span) []*version {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.shared = true
	return x.within(s)
}

// add makes a version visible to its transaction. The caller holds mu.
func (t *table) add(v *version) {
	t.heap = append(t.heap, v)
	for _, x := range t.def().indexes {
		x.insert(v)
	}
}

// object is what a name in a schema stands for; exactly one of the pointers is
// set.
type object struct {
	objectName
	table   *table
	view    *viewDefinition
	synonym *objectName
	virtual *virtual
	routine *createFunction
	// link is the database link of a synonym. Each leads back to this database.
	link string
}

type viewDefinition struct {
	query  *query
	result []outColumn // as they were when the view was created
}

// kind is OBJECT_TYPE of the catalogue.
func (o *object) kind() string {
	switch {
	case o.table != nil:
		return "TABLE"
	case o.synonym != nil:
		return "SYNONYM"
	case o.routine != nil:
		return "FUNCTION"
	}
	return "VIEW"
}
