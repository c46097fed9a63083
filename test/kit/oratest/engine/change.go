package engine

import "fmt"

// change runs whatever is not a SELECT, and counts the rows that it changed.
func (s *session) change(r *run, c *compiler, st statement, names []string) (int, error) {
	switch st := st.(type) {
	case insertStatement:
		return s.insert(r, c, st)
	case updateStatement:
		return s.modify(r, c, st.from, st.set, st.cond, "UPDATE")
	case deleteStatement:
		return s.modify(r, c, st.from, nil, st.cond, "DELETE")
	case transactionStatement:
		return 0, s.transact(st.verb)
	case alterSession:
		for _, kv := range st.settings {
			if err := s.set(kv[0], kv[1]); err != nil {
				return 0, err
			}
		}
		return 0, nil
	case plsqlBlock:
		return 0, protect(func() { s.runBlock(r, c, st, names) })
	case explainStatement:
		return 0, s.explain(r, c, st)
	case noStatement:
		return 0, nil
	}
	// Definitions end the transaction, even those that fail.
	s.endTransaction(true)
	return 0, asRefusal(s.engine.define(s, c, r, st))
}

func (s *session) transact(verb string) error {
	switch verb {
	case "COMMIT", "ROLLBACK":
		s.endTransaction(verb == "COMMIT")
		return nil
	}
	if s.tx != nil {
		return refuse(1453)
	}
	t := s.transaction()
	t.readOnly, t.snapshot = true, s.engine.scn.Load()
	return nil
}

// analyze counts the rows of a table for the catalogue.
func (s *session) analyze(owner, name string) {
	o, err := s.engine.resolve(s, s.user, owner, name)
	if err != nil || o.table == nil {
		panic(refuse(942))
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.count(o.table)
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

// asBinds makes binds of Go values.
func asBinds(all []any) ([]boundValue, error) {
	out := make([]boundValue, len(all))
	for i, a := range all {
		v, err := fromGo(a)
		if err != nil {
			return nil, fmt.Errorf("bind %d: %w", i+1, err)
		}
		out[i] = v
	}
	return out, nil
}
