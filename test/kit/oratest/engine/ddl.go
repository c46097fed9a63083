package engine

import (
	"cmp"
	"slices"
	"strconv"
)

// redefine replaces the definition of a table. The caller holds the engine's
// lock.
func (t *table) redefine(f func(*tableDefinition)) {
	d := *t.def()
	d.columns, d.indexes = slices.Clone(d.columns), slices.Clone(d.indexes)
	f(&d)
	t.definition.Store(&d)
}

// define runs a statement that changes the catalogue, which is the owner's alone.
func (s *session) define(c *compiler, r *run, st statement) {
	e := s.engine
	if !e.owns(s.user) {
		panic(refuse(1031))
	}
	switch st := st.(type) {
	case createTable:
		s.createTable(c, r, st)
	case createIndex:
		s.createIndex(st)
	case createView:
		s.createView(c, st)
	case createFunction:
		s.put(s.user, st.name, true, &object{routine: &st})
	case createSynonym:
		st.onSchema = cmp.Or(st.onSchema, s.user)
		s.put(st.schema, st.name, st.replace, &object{synonym: &objectName{st.onSchema, st.on}, link: st.link})
	case alterTable:
		s.alterTable(st)
	case dropStatement:
		s.drop(st)
	case createUser:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.users[st.name] = newUser()
	case grantStatement:
		s.grant(st)
	default:
		panic(refuse(900))
	}
}

// put adds an object to a schema.
func (s *session) put(schema, name string, replace bool, o *object) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	o.objectName = objectName{cmp.Or(schema, s.user), name}
	if old := e.objects[o.objectName]; old != nil && (!replace || old.kind() != o.kind()) {
		panic(refuse(955))
	}
	if o.table != nil {
		o.table.objectName = o.objectName
		for _, x := range o.table.def().indexes {
			x.owner = o.owner
			e.lastID++
			x.name = cmp.Or(x.name, "SYS_C00"+strconv.Itoa(e.lastID))
		}
	}
	e.objects[o.objectName] = o
}

func (s *session) createTable(c *compiler, r *run, st createTable) {
	t := &table{materialized: st.as != nil}
	d := &tableDefinition{analyzed: -1}
	constraints := st.constraints
	if st.as != nil {
		for _, column := range s.resultOf(r, c, st.as) {
			d.add(columnDefinition{name: column.name, typ: column.typ, notNull: !column.nullable})
		}
	}
	for _, definition := range st.columns {
		d.add(definition)
		constraints = append(constraints, definition.constraints...)
	}
	for _, k := range constraints {
		x := d.constraint(k)
		x.storage.rows = st.byIndex && k.primary
		d.indexes = append(d.indexes, x)
	}
	t.definition.Store(d)
	s.put(st.schema, st.name, false, &object{table: t})
}

// resultOf returns the columns of CREATE MATERIALIZED VIEW … AS SELECT, which has to be of
// no rows: it is never refreshed.
func (s *session) resultOf(r *run, c *compiler, q *query) []outColumn {
	out := c.query(q)
	r.view = s.view()
	in := out.open(r)
	defer in.close()
	if in.next() != nil {
		panic(unimplemented("a materialized view of rows"))
	}
	return out.columns
}

func (d *tableDefinition) add(definition columnDefinition) {
	if d.column(definition.name) >= 0 {
		panic(refuse(957))
	}
	d.columns = append(d.columns, column{
		name: definition.name, typ: definition.typ, nullable: !definition.notNull, def: definition.def, preset: definition.preset,
	})
}

// constraint returns the index of a key of a new table.
func (d *tableDefinition) constraint(k constraintDefinition) *index {
	x := &index{name: k.name, unique: true, primary: k.primary, columns: d.positions(k.columns)}
	x.descending = make([]bool, len(x.columns))
	for _, c := range x.columns {
		if typ := d.columns[c].typ; typ.name == typeTimestampTZ || typ.lob() {
			panic(refuse(2329))
		}
		if k.primary {
			d.columns[c].nullable = false
		}
	}
	return x
}

// positions are those of columns by name.
func (d *tableDefinition) positions(names []string) []int {
	all := make([]int, len(names))
	for i, name := range names {
		if all[i] = d.column(name); all[i] < 0 {
			panic(refuse(904, strconv.Quote(name)))
		}
	}
	return all
}

// ownTable finds a table to define.
func (s *session) ownTable(schema, name string) *table {
	o := s.engine.resolve(s.user, schema, name)
	if o.table == nil {
		panic(refuse(942))
	}
	return o.table
}

func (s *session) createIndex(st createIndex) {
	e, t := s.engine, s.ownTable(st.tableSchema, st.table)
	x := &index{
		owner: t.owner, name: st.name, columns: t.def().positions(st.columns), descending: st.descending,
		unique: st.unique, storage: st.storage,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// No row shall come between the filling of the index and its being there.
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.unique && len(t.heap) > 0 {
		panic(unimplemented("a unique index on rows"))
	}
	x.load(t.heap)
	t.redefine(func(d *tableDefinition) { d.indexes = append(d.indexes, x) })
}

func (s *session) createView(c *compiler, st createView) {
	v := &viewDefinition{query: st.query, result: c.query(st.query).columns}
	s.put(st.schema, st.name, false, &object{view: v})
}

func (s *session) alterTable(st alterTable) {
	e, t := s.engine, s.ownTable(st.schema, st.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.redefine(func(d *tableDefinition) {
		if st.add.name != "" {
			if st.add.def != nil || st.add.notNull || len(st.add.constraints) > 0 {
				panic(unimplemented("ALTER TABLE ADD of more than a name and a type"))
			}
			d.add(st.add)
		}
		if st.drop != "" {
			i := d.positions([]string{st.drop})[0]
			d.columns[i].dropped = true
			d.indexes = slices.DeleteFunc(d.indexes, func(x *index) bool { return slices.Contains(x.columns, i) })
		}
		if st.renameFrom != "" {
			d.columns[d.positions([]string{st.renameFrom})[0]].name = st.renameTo
		}
	})
}

func (s *session) drop(st dropStatement) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	name := objectName{cmp.Or(st.schema, s.user), st.name}
	if o := e.objects[name]; o == nil || o.kind() != st.what {
		panic(refuse(942))
	}
	delete(e.objects, name)
	for _, u := range e.users {
		delete(u.objects, name)
	}
}

// objectPrivilegesKnown are what GRANT … ON takes.
var objectPrivilegesKnown = []string{"SELECT", "READ", "INSERT", "UPDATE", "DELETE", "EXECUTE", "ALTER", "REFERENCES", "INDEX", "FLASHBACK", "DEBUG"}

// grant runs GRANT and REVOKE. System privileges open nothing here.
func (s *session) grant(st grantStatement) {
	e := s.engine
	var o *object
	if st.object != "" {
		o = e.resolve(s.user, st.schema, st.object)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range st.grantees {
		u := e.users[name]
		if u == nil {
			panic(refuse(1917, name))
		}
		if o == nil {
			continue
		}
		// A grant goes to a view of the system, never to its public synonym.
		if st.schema == "" && o.virtual != nil && o.name != st.object {
			panic(refuse(2030))
		}
		if u.objects[o.objectName] == nil {
			u.objects[o.objectName] = map[string]bool{}
		}
		for _, p := range st.privileges {
			if !slices.Contains(objectPrivilegesKnown, p) || p == "READ" && e.options.Version < 12 {
				panic(refuse(990))
			}
			u.objects[o.objectName][p] = !st.revoke
		}
	}
}
