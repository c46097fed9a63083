package engine

import (
	"iter"
	"math/big"
	"time"
)

// loadChunk is how many rows share an allocation.
const loadChunk = 4096

// BulkInsert adds rows to a table of the owner and commits them, as a direct
// path load does: all or none, without transactions of others in between. The
// values are in the order of the columns, and as [Engine.Exec] binds them. Keys
// are not checked.
func (e *Engine) BulkInsert(name string, rows iter.Seq[[]any]) error {
	tx := e.Begin()
	defer tx.Rollback()
	o, err := e.resolve(tx.session, tx.session.user, "", name)
	if err != nil {
		return err
	}
	if o.table == nil {
		return refuse(942)
	}
	l := loader{engine: e, session: tx.session, table: o.table, definition: o.table.def()}
	for row := range rows {
		if err := l.add(row); err != nil {
			return err
		}
	}
	l.publish()
	return nil
}

type loader struct {
	engine     *Engine
	table      *table
	definition *tableDefinition
	session    *session
	all        []*version
	versions   []version
	values     []value
}

// add converts a row. Rows share blocks of memory.
func (l *loader) add(row []any) error {
	width := len(l.definition.columns)
	if len(row) != width {
		return refuse(947)
	}
	if len(l.versions) == 0 {
		l.versions, l.values = make([]version, loadChunk), make([]value, loadChunk*width)
	}
	v := &l.versions[0]
	v.values = l.values[:width:width]
	l.versions, l.values = l.versions[1:], l.values[width:]
	for i, x := range row {
		value, err := l.convert(x, l.definition.columns[i].typ)
		if err != nil {
			return err
		}
		v.values[i] = value
	}
	l.all = append(l.all, v)
	return protect(func() { l.session.fit(l.table, l.definition, v.values, 1400) })
}

// convert takes the short way for the usual types.
func (l *loader) convert(x any, typ dataType) (value, error) {
	switch x := x.(type) {
	case nil:
		return null, nil
	case string:
		return text(x), nil
	case int:
		return integer(int64(x)), nil
	case int64:
		return integer(x), nil
	case *big.Int:
		return number(new(big.Int).Set(x), 0), nil
	case time.Time:
		switch k := typ.kind(); k {
		case kindDate, kindTimestamp:
			return wall(k, x), nil
		}
	}
	b, err := fromGo(x)
	return b.value, err
}

// publish makes the rows visible.
func (l *loader) publish() {
	e, t := l.engine, l.table
	e.committing.Lock()
	defer e.committing.Unlock()
	scn := e.scn.Load() + 1
	t.mu.Lock()
	for _, v := range l.all {
		t.lastID++
		v.id = t.lastID
		v.born.Store(scn)
	}
	t.heap = append(t.heap, l.all...)
	for _, x := range t.def().indexes {
		x.load(l.all)
	}
	t.mu.Unlock()
	e.scn.Store(scn)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count(t)
}

// load adds the rows of CREATE TABLE … AS SELECT.
func (e *Engine) load(t *table, rows [][]value) error {
	if len(rows) == 0 {
		return nil
	}
	l := loader{engine: e, table: t, definition: t.def()}
	for _, values := range rows {
		l.all = append(l.all, &version{values: values})
	}
	l.publish()
	return nil
}
