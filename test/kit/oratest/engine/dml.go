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
func (s *session) write(r *run, body func(tx *transaction) (int, error)) (int, error) {
	if s.tx != nil && s.tx.readOnly {
		return 0, refuse(1456)
	}
	if mode := s.engine.Database().OpenMode; mode != "READ WRITE" {
		return 0, refuse(16000)
	}
	tx := s.transaction()
	fresh := tx.begun.IsZero()
	// The transaction can be seen before it takes the time for its rows.
	tx.begin(s.engine.now())
	r.now, r.writing = s.engine.now(), true
	keep := len(tx.changes)
	for {
		r.view = s.view()
		var n int
		var err error
		if refusal := protect(func() { n, err = body(tx) }); refusal != nil {
			err = refusal
		}
		if err == nil {
			return n, nil
		}
		tx.undo(keep)
		var busy *conflict
		if errors.As(err, &busy) {
			if err = tx.await(r.ctx, busy.stamp); err == nil {
				continue
			}
		}
		if fresh {
			s.endTransaction(false)
		}
		return 0, asRefusal(err)
	}
}

// insert adds a row of a transaction.
func (t *table) insert(tx *transaction, values []value, id uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.unique(tx, values); err != nil {
		return err
	}
	if id == 0 {
		t.lastID++
		id = t.lastID
	}
	v := &version{values: values, id: id}
	v.born.Store(tx.stamp())
	t.add(v)
	tx.changes = append(tx.changes, change{v, true})
	return nil
}

// unique looks for rows with the same keys. The caller holds mu.
func (t *table) unique(tx *transaction, values []value) error {
	for _, x := range t.def().indexes {
		if !x.unique || !slices.ContainsFunc(x.columns, func(c int) bool { return !at(values, c).isNull() }) {
			continue
		}
		var err error
		x.equal(values, func(v *version) bool {
			err = tx.clash(v)
			return err == nil
		})
		var busy *conflict
		if err != nil && !errors.As(err, &busy) {
			return refuse(1, x.owner+"."+x.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errDuplicate = errors.New("duplicate")

// clash says what a version with an equal key means to the transaction.
func (t *transaction) clash(v *version) error {
	born, dead := v.born.Load(), v.dead.Load()
	switch own := t.stamp(); {
	case born == aborted, dead != 0 && dead&uncommitted == 0, dead == own && dead != 0:
		return nil
	case born&uncommitted != 0 && born != own:
		return &conflict{born}
	case dead&uncommitted != 0:
		return &conflict{dead}
	}
	return errDuplicate
}

// remove ends a row.
func (t *table) remove(tx *transaction, v *version) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if dead := v.dead.Load(); dead != 0 {
		if dead&uncommitted == 0 {
			dead = 0
		}
		return &conflict{dead}
	}
	v.dead.Store(tx.stamp())
	tx.changes = append(tx.changes, change{v, false})
	return nil
}

// fit brings the values of a row to the types of its columns.
func (s *session) fit(t *table, d *tableDefinition, values []value, code int) {
	for i, c := range d.columns {
		if c.dropped {
			continue
		}
		name := func() string { return fmt.Sprintf("%q.%q.%q", t.owner, t.name, c.name) }
		values[i] = s.cast(values[i], c.typ, false, name)
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
func (s *session) modify(r *run, c *compiler, from fromItem, set []assignment, cond expr, privilege string) (int, error) {
	o, err := s.target(c, from.schema, from.table, privilege)
	if err != nil {
		return 0, err
	}
	t := o.table
	return s.write(r, func(tx *transaction) (int, error) {
		all := s.search(r, c, o, from, set, cond)
		for _, f := range all {
			if err := t.remove(tx, f.version); err != nil {
				return 0, err
			}
		}
		if set == nil {
			return len(all), nil
		}
		for _, f := range all {
			if err := t.insert(tx, f.values, f.version.id); err != nil {
				return 0, err
			}
		}
		return len(all), nil
	})
}

// target finds the table of a change and checks the right to it.
func (s *session) target(c *compiler, schema, name, privilege string) (*object, error) {
	o, err := s.engine.resolve(s, c.user, schema, name)
	if err != nil {
		return nil, err
	}
	if err := s.engine.mayChange(c.user, o, privilege); err != nil {
		return nil, err
	}
	if o.table == nil {
		return nil, refuse(1732)
	}
	return o, nil
}

// search finds the rows of an UPDATE or DELETE.
func (s *session) search(r *run, c *compiler, o *object, from fromItem, set []assignment, cond expr) []found {
	bp, sc := &blockPlan{}, &scope{}
	conditions := c.from(bp, sc, from)
	if cond != nil {
		conditions = append(conditions, c.conjuncts(sc, cond)...)
	}
	d := o.table.def()
	positions := make([]int, len(set))
	for i, a := range set {
		if positions[i] = d.column(a.column); positions[i] < 0 {
			c.fail(904, `"`+a.column+`"`)
		}
		bp.items = append(bp.items, c.value(sc, a.x))
	}
	bp.distribute(conditions)
	bp.choose()
	f := &frame{run: r, rows: make([][]value, 1), versions: make([]*version, 1)}
	j := &joiner{plan: bp, frame: f, inputs: make([]input, 1), stop: -1}
	j.prepare()
	defer j.close()
	var all []found
	for j.next() {
		one := found{version: f.versions[0]}
		if set != nil {
			one.values = s.changed(f, o.table, d, bp.items, positions)
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
