package engine

import (
	"slices"
	"strconv"
)

// redefine replaces the definition of a table. The caller holds the engine's
// lock.
func (t *table) redefine(f func(*tableDefinition)) {
	d := *t.def()
	d.columns, d.constraints, d.indexes = slices.Clone(d.columns), slices.Clone(d.constraints), slices.Clone(d.indexes)
	f(&d)
	t.definition.Store(&d)
}

// define runs a statement that changes the catalogue.
func (e *Engine) define(s *session, c *compiler, r *run, st statement) error {
	switch st := st.(type) {
	case createTable:
		return e.createTable(s, c, r, st)
	case createIndex:
		return e.createIndex(s, st)
	case createView:
		return e.createView(s, c, st)
	case createFunction:
		return e.put(s, s.schema, st.name, "CREATE PROCEDURE", true, &object{routine: &routine{st}})
	case createSynonym:
		return e.createSynonym(s, st)
	case alterTable:
		return e.alterTable(s, st)
	case dropStatement:
		return e.drop(s, st)
	case createUser, grantStatement:
		return e.defineRights(s, st)
	}
	return refuse(900)
}

// put adds an object to a schema.
func (e *Engine) put(s *session, schema, name, privilege string, replace bool, o *object) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if schema == "" {
		schema = s.schema
	}
	if !e.has(s.user, privilege) || schema != s.user && !e.users[s.user].all {
		return refuse(1031)
	}
	o.objectName = objectName{schema, name}
	if old := e.objects[o.objectName]; old != nil && (!replace || old.kind() != o.kind()) {
		return refuse(955)
	}
	o.id, o.created = e.nextID(), e.now()
	if o.table != nil {
		o.table.objectName = o.objectName
		for _, x := range o.table.def().indexes {
			x.owner = schema
			if e.indexes[objectName{schema, x.name}] != nil {
				return refuse(955)
			}
		}
		for _, x := range o.table.def().indexes {
			e.indexes[objectName{schema, x.name}] = x
			x.id = e.nextID()
		}
	}
	e.objects[o.objectName] = o
	return nil
}

// systemName names what was given no name. The caller holds mu.
func (e *Engine) systemName() string { return "SYS_C00" + strconv.Itoa(e.nextID()) }

func (e *Engine) createTable(s *session, c *compiler, r *run, st createTable) error {
	t := &table{materialized: st.materialized}
	d := &tableDefinition{analyzed: -1}
	var content [][]value
	if st.as != nil {
		var err error
		if content, err = s.tableAs(r, c, d, st); err != nil {
			return err
		}
	}
	constraints := st.constraints
	for _, definition := range st.columns {
		if err := addColumn(d, definition); err != nil {
			return err
		}
		constraints = append(constraints, definition.constraints...)
	}
	if len(d.columns) == 0 {
		return refuse(904, "")
	}
	t.definition.Store(d)
	e.mu.Lock()
	err := e.addConstraints(t, d, constraints)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	for _, k := range d.constraints {
		if k.kind == 'P' {
			k.index.storage.rows = st.byIndex
		}
	}
	if err := e.put(s, st.schema, st.name, "CREATE TABLE", false, &object{table: t}); err != nil {
		return err
	}
	return e.load(t, content)
}

// tableAs takes columns and rows of CREATE TABLE … AS SELECT.
func (s *session) tableAs(r *run, c *compiler, d *tableDefinition, st createTable) (all [][]value, err error) {
	refusal := protect(func() {
		out := c.query(nil, st.as)
		for _, column := range out.columns {
			definition := columnDefinition{name: column.name, typ: column.typ, hasType: true, nullable: &column.nullable}
			if err = addColumn(d, definition); err != nil {
				return
			}
		}
		r.view = s.view()
		in := out.open(r, nil)
		defer in.close()
		for row := in.next(); row != nil; row = in.next() {
			all = append(all, slices.Clone(row))
		}
	})
	if refusal != nil {
		return nil, refusal
	}
	return all, err
}

func addColumn(d *tableDefinition, definition columnDefinition) error {
	if !definition.hasType {
		return refuse(902)
	}
	if d.column(definition.name) >= 0 {
		return refuse(957)
	}
	c := column{name: definition.name, typ: definition.typ, nullable: true, def: definition.def}
	if definition.nullable != nil {
		c.nullable = *definition.nullable
	}
	d.columns = append(d.columns, c)
	return nil
}

// addConstraints adds constraints with their indexes to a definition that
// nobody else sees yet. The caller holds the locks of the engine and the table.
func (e *Engine) addConstraints(t *table, d *tableDefinition, all []constraintDefinition) error {
	for _, k := range all {
		if err := e.addConstraint(t, d, k); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) addConstraint(t *table, d *tableDefinition, definition constraintDefinition) error {
	k := constraint{name: definition.name, kind: definition.kind}
	if k.name == "" {
		k.name = e.systemName()
	}
	for _, name := range definition.columns {
		i := d.column(name)
		if i < 0 {
			return refuse(904, `"`+name+`"`)
		}
		k.columns = append(k.columns, i)
	}
	if k.kind == 'P' || k.kind == 'U' {
		for _, c := range k.columns {
			if typ := d.columns[c].typ; typ.name == typeTimestampTZ || typ.lob() {
				return refuse(2329)
			}
			if k.kind == 'P' {
				d.columns[c].nullable = false
			}
		}
		x := &index{owner: t.owner, name: k.name, columns: k.columns, descending: make([]bool, len(k.columns)), unique: true, constraint: k.name}
		if err := t.fill(x); err != nil {
			return refuse(2437)
		}
		k.index = x
		d.indexes = append(d.indexes, x)
	}
	d.constraints = append(d.constraints, k)
	return nil
}

// fill brings the rows of the table into a new index. The caller holds mu.
func (t *table) fill(x *index) error {
	if len(t.heap) == 0 {
		return nil
	}
	x.load(t.heap)
	if !x.unique {
		return nil
	}
	var last *version
	for _, v := range x.runs[0] {
		if v.born.Load() == aborted || v.dead.Load() != 0 {
			continue
		}
		if last != nil && x.sameKey(last, v) {
			return refuse(1452)
		}
		last = v
	}
	return nil
}

// sameKey compares keys; NULL throughout is never the same.
func (x *index) sameKey(a, b *version) bool {
	nulls := true
	for _, c := range x.columns {
		if compareNullsLast(at(a.values, c), at(b.values, c)) != 0 {
			return false
		}
		nulls = nulls && at(a.values, c).isNull()
	}
	return !nulls
}

// ownTable finds a table that the session may define.
func (e *Engine) ownTable(s *session, schema, name string) (*object, error) {
	o, err := e.resolve(s, s.user, schema, name)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	switch {
	case o.table == nil || !e.hasOn(s.user, o, "SELECT", "READ", "ALTER"):
		return nil, refuse(942)
	case o.owner != s.user && !e.hasOn(s.user, o, "ALTER"):
		return nil, refuse(1031)
	}
	return o, nil
}
