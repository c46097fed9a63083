package engine

// input reads one source, in the order of its index if one serves. A nil row
// ends it.
type input interface {
	next() ([]value, *version)
	close()
}

// open begins to read a source, given the rows of those before it.
func (a *access) open(f *frame) input {
	switch {
	case a.query != nil:
		return queryInput{a.query.open(f.run)}
	case a.virtual != nil:
		return &memoryInput{all: a.virtual.rows(f.run)}
	case a.index == nil:
		return &tableInput{run: f.run, left: a.table.live()}
	}
	s, empty := a.span(f)
	if empty {
		return &memoryInput{}
	}
	return &tableInput{run: f.run, left: a.table.within(a.index, s)}
}

// span evaluates the bounds of an index. A bound that is NULL matches nothing.
func (a *access) span(f *frame) (s *span, empty bool) {
	s = &span{above: a.above, below: a.below, notNull: a.notNull, nothing: a.nothing}
	for _, n := range a.equal {
		v := n.eval(f)
		if v.isNull() {
			return nil, true
		}
		s.equal = append(s.equal, v)
	}
	if a.low != nil {
		if s.low = a.low.eval(f); s.low.isNull() {
			return nil, true
		}
	}
	if a.high != nil {
		if s.high = a.high.eval(f); s.high.isNull() {
			return nil, true
		}
	}
	return s, false
}

// queryInput is a subquery as a source.
type queryInput struct{ rows }

func (q queryInput) next() ([]value, *version) {
	return q.rows.next(), nil
}

// memoryInput is a view of the catalogue.
type memoryInput struct{ all [][]value }

func (m *memoryInput) next() ([]value, *version) {
	if len(m.all) == 0 {
		return nil, nil
	}
	row := m.all[0]
	m.all = m.all[1:]
	return row, nil
}

func (m *memoryInput) close() {}

// tableInput is a table, or what an index has of it.
type tableInput struct {
	run  *run
	left []*version
}

func (h *tableInput) next() ([]value, *version) {
	h.run.check()
	for len(h.left) > 0 {
		v := h.left[0]
		h.left = h.left[1:]
		if h.run.view.sees(v) {
			return v.values, v
		}
	}
	return nil, nil
}

func (h *tableInput) close() { h.left = nil }

// check ends an execution that was cancelled.
func (r *run) check() {
	if r.ctx.Err() != nil {
		panic(refuse(1013))
	}
}
