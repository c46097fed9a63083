package engine

import (
	"context"
	"slices"
)

func (e *Engine) createIndex(s *session, st createIndex) error {
	o, err := e.ownTable(s, st.tableSchema, st.table)
	if err != nil {
		return err
	}
	t, d := o.table, o.table.def()
	x := &index{owner: o.owner, name: st.name, descending: st.descending, unique: st.unique, storage: st.storage}
	for _, name := range st.columns {
		i := d.column(name)
		if i < 0 {
			return refuse(904, `"`+name+`"`)
		}
		if d.columns[i].typ.lob() {
			return refuse(2327)
		}
		x.columns = append(x.columns, i)
	}
	for _, other := range d.indexes {
		if slices.Equal(other.columns, x.columns) && slices.Equal(other.descending, x.descending) {
			return refuse(1408)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indexes[objectName{x.owner, x.name}] != nil {
		return refuse(955)
	}
	// No row shall come between the filling of the index and its being there.
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.fill(x); err != nil {
		return err
	}
	x.id = e.nextID()
	e.indexes[objectName{x.owner, x.name}] = x
	t.redefine(func(d *tableDefinition) { d.indexes = append(d.indexes, x) })
	return nil
}

func (e *Engine) createView(s *session, c *compiler, st createView) error {
	v := &viewDefinition{text: st.text, query: st.query, columns: st.columns}
	if err := protect(func() { v.result = c.query(nil, st.query).columns }); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range v.result {
		name := renamed(st.columns, i, v.result[i].name)
		if seen[name] {
			return refuse(957)
		}
		seen[name] = true
		v.result[i].name = name
	}
	return e.put(s, st.schema, st.name, "CREATE VIEW", st.replace, &object{view: v})
}

func (e *Engine) createSynonym(s *session, st createSynonym) error {
	if st.onSchema == "" {
		st.onSchema = s.schema
	}
	privilege := "CREATE SYNONYM"
	if st.public {
		e.mu.RLock()
		allowed := e.has(s.user, "CREATE PUBLIC SYNONYM")
		e.mu.RUnlock()
		if !allowed {
			return refuse(1031)
		}
		st.schema = "PUBLIC"
	}
	return e.put(s, st.schema, st.name, privilege, st.replace, &object{synonym: &objectName{st.onSchema, st.on}, link: st.link})
}

func (e *Engine) alterTable(s *session, st alterTable) error {
	o, err := e.ownTable(s, st.schema, st.name)
	if err != nil {
		return err
	}
	missing, err := s.defaults(st.add)
	if err != nil {
		return err
	}
	t := o.table
	e.mu.Lock()
	defer e.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	empty := !slices.ContainsFunc(t.heap, func(v *version) bool { return view{scn: e.scn.Load()}.sees(v) })
	t.redefine(func(d *tableDefinition) {
		for _, f := range []func() error{
			func() error { return d.addColumns(st.add, missing, empty) },
			func() error { return d.modifyColumns(st.modify, empty) },
			func() error { return d.dropColumns(st.drop) },
			func() error { return d.rename(st.renameFrom, st.renameTo) },
			func() error { return e.addConstraints(t, d, st.constraints) },
		} {
			if err == nil {
				err = f()
			}
		}
		if err != nil {
			*d = *t.def()
			return
		}
		for _, x := range d.indexes {
			e.indexes[objectName{x.owner, x.name}] = x
		}
		for name, x := range e.indexes {
			if x.owner == t.owner && !slices.Contains(d.indexes, x) && slices.Contains(t.def().indexes, x) {
				delete(e.indexes, name)
			}
		}
	})
	return err
}

// defaults are what older rows hold in columns that are added.
func (s *session) defaults(all []columnDefinition) ([]value, error) {
	missing := make([]value, len(all))
	for i, definition := range all {
		if definition.def == nil {
			continue
		}
		c := &compiler{session: s, user: s.user}
		v, err := c.evaluate(&frame{run: &run{ctx: context.Background(), session: s, now: s.engine.now()}}, definition.def)
		if err != nil {
			return nil, err
		}
		if missing[i], err = s.cast(v, definition.typ, false, func() string { return definition.name }); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func (d *tableDefinition) addColumns(all []columnDefinition, missing []value, empty bool) error {
	for i, definition := range all {
		if d.column(definition.name) >= 0 {
			return refuse(1430)
		}
		if err := addColumn(d, definition); err != nil {
			return err
		}
		c := &d.columns[len(d.columns)-1]
		c.missing = missing[i]
		if !c.nullable && c.missing.isNull() && !empty {
			return refuse(1758)
		}
	}
	return nil
}

func (d *tableDefinition) modifyColumns(all []columnDefinition, empty bool) error {
	for _, definition := range all {
		i := d.column(definition.name)
		if i < 0 {
			return refuse(904, `"`+definition.name+`"`)
		}
		c := &d.columns[i]
		if definition.hasType {
			if !empty && definition.typ.name != c.typ.name {
				return refuse(1439)
			}
			c.typ = definition.typ
		}
		if definition.nullable != nil {
			c.nullable = *definition.nullable
		}
		if definition.def != nil {
			c.def = definition.def
		}
	}
	return nil
}

func (d *tableDefinition) dropColumns(names []string) error {
	for _, name := range names {
		i := d.column(name)
		if i < 0 {
			return refuse(904, `"`+name+`"`)
		}
		d.columns[i].dropped = true
		d.indexes = slices.DeleteFunc(d.indexes, func(x *index) bool { return slices.Contains(x.columns, i) })
		d.constraints = slices.DeleteFunc(d.constraints, func(k constraint) bool { return slices.Contains(k.columns, i) })
	}
	return nil
}

func (d *tableDefinition) rename(from, to string) error {
	if from == "" {
		return nil
	}
	i := d.column(from)
	if i < 0 {
		return refuse(904, `"`+from+`"`)
	}
	if d.column(to) >= 0 {
		return refuse(957)
	}
	d.columns[i].name = to
	return nil
}

func (e *Engine) drop(s *session, st dropStatement) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	schema := st.schema
	if schema == "" {
		schema = s.schema
	}
	if schema != s.user && !e.users[s.user].all {
		return refuse(1031)
	}
	name := objectName{schema, st.name}
	switch st.what {
	case "USER", "ROLE":
		if e.users[st.name] == nil {
			return refuse(1918, st.name)
		}
		delete(e.users, st.name)
		return nil
	case "INDEX":
		return e.dropIndex(name)
	case "PUBLIC SYNONYM":
		name.owner = "PUBLIC"
	}
	o := e.objects[name]
	if o == nil || o.kind() != st.what && (st.what != "PUBLIC SYNONYM" || o.synonym == nil) {
		return refuse(map[string]int{"TABLE": 942, "VIEW": 942, "SYNONYM": 1434, "PUBLIC SYNONYM": 1432}[st.what])
	}
	if o.table != nil {
		for _, x := range o.table.def().indexes {
			delete(e.indexes, objectName{x.owner, x.name})
		}
	}
	delete(e.objects, name)
	for _, u := range e.users {
		delete(u.objects, name)
	}
	return nil
}

func (e *Engine) dropIndex(name objectName) error {
	x := e.indexes[name]
	if x == nil {
		return refuse(1418)
	}
	if x.constraint != "" {
		return refuse(2429)
	}
	delete(e.indexes, name)
	for _, o := range e.objects {
		if o.table != nil && slices.Contains(o.table.def().indexes, x) {
			o.table.redefine(func(d *tableDefinition) {
				d.indexes = slices.DeleteFunc(d.indexes, func(other *index) bool { return other == x })
			})
		}
	}
	return nil
}
