package engine

import (
	"errors"
	"fmt"
	"slices"
)

// conflict says that a row or a key is in the hands of another transaction.
type conflict struct {
	stamp uint64 // 0 where that transaction has committed already
}

func (c *conflict) Error() string { return "another transaction came first" }

// write runs a statement that changes rows: all of it or nothing. Where another
// transaction is in the way it waits for that one's end and begins again.
func (s *session) write(r *run, body func(tx *transaction) int) int {
	if s.tx != nil && s.tx.readOnly {
		panic(refuse(1456))
	}
	tx := s.transaction()
	fresh := tx.begun.IsZero()
	// The transaction can be seen before it takes the time for its rows.
	tx.begin(s.engine.now())
	r.now = s.engine.now()
	keep := len(tx.changes)
	for {
		r.view = s.view()
		var n int
		err := protect(func() { n = body(tx) })
		if err == nil {
			return n
		}
		tx.undo(keep)
		var busy *conflict
		if errors.As(err, &busy) {
			s.engine.await(r.ctx, busy.stamp)
			continue
		}
		if fresh {
			s.endTransaction(false)
		}
		panic(err)
	}
}

// insert adds a row of a transaction.
func (t *table) insert(tx *transaction, values []value, id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unique(tx, values)
	if id == 0 {
		t.lastID++
		id = t.lastID
	}
	v := &version{values: values, id: id}
	v.born.Store(tx.stamp())
	t.add(v)
	tx.changes = append(tx.changes, change{v, true})
}

// unique looks for rows with the same keys. The caller holds mu.
func (t *table) unique(tx *transaction, values []value) {
	for _, x := range t.def().indexes {
		if !x.unique || !slices.ContainsFunc(x.columns, func(c int) bool { return !cell(values, c).isNull() }) {
			continue
		}
		for _, v := range x.equal(values) {
			if tx.clashes(v) {
				panic(refuse(1, x.owner+"."+x.name))
			}
		}
	}
}

// clashes says whether a version with an equal key is in the way of the transaction.
func (t *transaction) clashes(v *version) bool {
	born, dead := v.born.Load(), v.dead.Load()
	switch own := t.stamp(); {
	case born == aborted, dead != 0 && dead&uncommitted == 0, dead == own && dead != 0:
		return false
	case born&uncommitted != 0 && born != own:
		panic(&conflict{born})
	case dead&uncommitted != 0:
		panic(&conflict{dead})
	}
	return true
}

// remove ends a row.
func (t *table) remove(tx *transaction, v *version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if dead := v.dead.Load(); dead != 0 {
		if dead&uncommitted == 0 {
			dead = 0
		}
		panic(&conflict{dead})
	}
	v.dead.Store(tx.stamp())
	tx.changes = append(tx.changes, change{v, false})
}

// fit brings the values of a row to the types of its columns.
func (s *session) fit(t *table, d *tableDefinition, values []value, code int) {
	for i, c := range d.columns {
		if c.dropped {
			continue
		}
		name := func() string { return fmt.Sprintf("%q.%q.%q", t.owner, t.name, c.name) }
		values[i] = s.cast(values[i], c.typ, name)
		if values[i].isNull() && !c.nullable {
			panic(refuse(code, name()))
		}
	}
}

// found is a row that an UPDATE or DELETE has found, and its new values.
type found struct {
	version *version
	values  []value
}

// modify runs an UPDATE, or a DELETE without assignments.
func (s *session) modify(r *run, c *compiler, from fromItem, set []assignment, cond expr, privilege string) int {
	t := s.target(c, from.schema, from.table, privilege)
	return s.write(r, func(tx *transaction) int {
		all := s.search(r, c, t, from, set, cond)
		for _, f := range all {
			t.remove(tx, f.version)
		}
		for _, f := range all {
			if set != nil {
				t.insert(tx, f.values, f.version.id)
			}
		}
		return len(all)
	})
}

// target finds the table of a change and checks the right to it.
func (s *session) target(c *compiler, schema, name, privilege string) *table {
	o := s.engine.resolve(c.user, schema, name)
	s.engine.may(c.user, o, privilege)
	if o.table == nil {
		panic(refuse(1732))
	}
	return o.table
}

// search finds the rows of an UPDATE or DELETE.
func (s *session) search(r *run, c *compiler, t *table, from fromItem, set []assignment, cond expr) []found {
	bp, sc := &blockPlan{}, &scope{}
	conditions := c.from(bp, sc, from)
	if cond != nil {
		conditions = append(conditions, c.conjuncts(sc, cond)...)
	}
	names := make([]string, len(set))
	for i, a := range set {
		names[i] = a.column
		bp.items = append(bp.items, c.value(sc, a.x))
	}
	d := t.def()
	positions := d.positions(names)
	bp.distribute(conditions)
	bp.choose()
	j := bp.joiner(r)
	defer j.close()
	var all []found
	for j.next() {
		one := found{version: j.frame.versions[0]}
		if set != nil {
			one.values = s.changed(j.frame, t, d, bp.items, positions)
		}
		all = append(all, one)
	}
	return all
}

// changed is the present row with its new values.
func (s *session) changed(f *frame, t *table, d *tableDefinition, items []*node, positions []int) []value {
	values := make([]value, len(d.columns))
	for i := range d.columns {
		values[i] = cell(f.rows[0], i)
	}
	for i, n := range items {
		values[positions[i]] = n.eval(f)
	}
	s.fit(t, d, values, 1407)
	return values
}
