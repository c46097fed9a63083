package engine

import "slices"

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
	v := &viewDefinition{query: st.query}
	if err := protect(func() { v.result = c.query(nil, st.query).columns }); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range v.result {
		name := v.result[i].name
		if seen[name] {
			return refuse(957)
		}
		seen[name] = true
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
	t := o.table
	e.mu.Lock()
	defer e.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	empty := !slices.ContainsFunc(t.heap, func(v *version) bool { return view{scn: e.scn.Load()}.sees(v) })
	t.redefine(func(d *tableDefinition) {
		for _, f := range []func() error{
			func() error { return d.addColumns(st.add, empty) },
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

func (d *tableDefinition) addColumns(all []columnDefinition, empty bool) error {
	for _, definition := range all {
		if d.column(definition.name) >= 0 {
			return refuse(1430)
		}
		if err := addColumn(d, definition); err != nil {
			return err
		}
		if definition.def != nil {
			return refuse(3001)
		}
		if !d.columns[len(d.columns)-1].nullable && !empty {
			return refuse(1758)
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
	case "TABLE", "VIEW", "SYNONYM", "FUNCTION":
	default:
		return refuse(3001)
	}
	o := e.objects[name]
	if o == nil || o.kind() != st.what {
		return refuse(942)
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
