package engine

import (
	"iter"
	"time"
)

// loadChunk is how many rows share an allocation.
const loadChunk = 4096

// BulkInsert adds rows to a table of the owner and commits them, as a direct
// path load does: all or none, without transactions of others in between. The
// values are in the order of the columns: text, numbers, and wall clocks. Keys
// are not checked.
func (e *Engine) BulkInsert(name string, rows iter.Seq[[]any]) error {
	tx := e.Begin()
	defer tx.Rollback()
	return protect(func() {
		t := tx.session.ownTable("", name)
		definition := t.def()
		width := len(definition.columns)
		var all []*version
		var versions []version
		var values []value
		for row := range rows {
			if len(row) != width {
				panic(refuse(947))
			}
			if len(versions) == 0 {
				versions, values = make([]version, loadChunk), make([]value, loadChunk*width)
			}
			v := &versions[0]
			v.values = values[:width:width]
			versions, values = versions[1:], values[width:]
			for i, x := range row {
				v.values[i] = loaded(x)
			}
			tx.session.fit(t, definition, v.values, 1400)
			all = append(all, v)
		}
		e.publish(t, all)
	})
}

func loaded(x any) value {
	switch x := x.(type) {
	case string:
		return text(x)
	case int64:
		return integer(x)
	case time.Time:
		return wall(kindTimestamp, x)
	}
	panic(refuse(932, "VARCHAR2", "OTHER"))
}

// publish makes rows visible.
func (e *Engine) publish(t *table, all []*version) {
	e.committing.Lock()
	defer e.committing.Unlock()
	scn := e.scn.Load() + 1
	t.mu.Lock()
	for _, v := range all {
		t.lastID++
		v.id = t.lastID
		v.born.Store(scn)
	}
	t.heap = append(t.heap, all...)
	for _, x := range t.def().indexes {
		x.load(all)
	}
	t.mu.Unlock()
	e.scn.Store(scn)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count(t)
}
