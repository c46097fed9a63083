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
		return queryInput{a.query.open(f.run, f.parent)}
	case a.virtual != nil:
		return &memoryInput{all: a.virtual.rows(f.run)}
	case a.index == nil:
		return &heapInput{run: f.run, left: a.table.live()}
	}
	s, empty := a.span(f)
	if empty {
		return &memoryInput{}
	}
	return &indexInput{run: f.run, walk: a.table.walk(a.index, s)}
}

// span evaluates the bounds of an index. A bound that is NULL matches nothing.
func (a *access) span(f *frame) (s *span, empty bool) {
	s = &span{above: a.above, below: a.below, backwards: a.backwards, notNull: a.notNull, nothing: a.nothing}
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

// heapInput is a whole table.
type heapInput struct {
	run  *run
	left []*version
}

func (h *heapInput) next() ([]value, *version) {
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

func (h *heapInput) close() { h.left = nil }

// indexInput is a span of an index.
type indexInput struct {
	run  *run
	walk *walk
}

func (x *indexInput) next() ([]value, *version) {
	x.run.check()
	for {
		v := x.walk.next()
		if v == nil {
			return nil, nil
		}
		if x.run.view.sees(v) {
			return v.values, v
		}
	}
}

func (x *indexInput) close() { x.walk.runs = nil }

// check ends an execution that was cancelled.
func (r *run) check() {
	if r.ctx.Err() != nil {
		panic(refuse(1013))
	}
}
