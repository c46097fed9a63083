package engine

// change runs whatever is not a SELECT, and counts the rows that it changed.
func (s *session) change(r *run, c *compiler, st statement) int {
	switch st := st.(type) {
	case insertStatement:
		return s.insert(r, c, st)
	case updateStatement:
		return s.modify(r, c, st.from, st.set, st.cond, "UPDATE")
	case deleteStatement:
		return s.modify(r, c, st.from, nil, st.cond, "DELETE")
	case transactionStatement:
		s.transact(st.verb)
	case alterSession:
		for _, kv := range st.settings {
			s.set(kv[0], kv[1])
		}
	case plsqlBlock:
		s.runBlock(r, c, st)
	case explainStatement:
		s.explain(r, c, st)
	case noStatement:
	default:
		// Definitions end the transaction, even those that fail.
		s.endTransaction(true)
		s.define(c, r, st)
	}
	return 0
}

func (s *session) transact(verb string) {
	switch verb {
	case "COMMIT", "ROLLBACK":
		s.endTransaction(verb == "COMMIT")
		return
	}
	if s.tx != nil {
		panic(refuse(1453))
	}
	t := s.transaction()
	t.readOnly, t.snapshot = true, s.engine.scn.Load()
}

// analyze counts the rows of a table for the catalogue.
func (s *session) analyze(owner, name string) {
	t := s.ownTable(owner, name)
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.count(t)
}

// count sets NUM_ROWS. The caller holds mu.
func (e *Engine) count(t *table) {
	w := view{scn: e.scn.Load()}
	n := int64(0)
	for _, v := range t.live() {
		if w.sees(v) {
			n++
		}
	}
	t.redefine(func(d *tableDefinition) { d.analyzed = n })
}
