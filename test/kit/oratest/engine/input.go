package engine

// input reads one source, in the order of its index if one serves. A nil row
// ends it.
type input interface {
	next() ([]value, *version, error)
	close()
}

// open begins to read a source, given the rows of those before it.
func (a *access) open(f *frame) (input, error) {
	switch {
	case a.query != nil:
		in, err := a.query.open(f.run, f.parent)
		if err != nil {
			return nil, err
		}
		return queryInput{in}, nil
	case a.virtual != nil:
		return &memoryInput{all: a.virtual.rows(f.run)}, nil
	case a.index == nil:
		return &heapInput{run: f.run, left: a.table.live()}, nil
	}
	s, empty, err := a.span(f)
	if err != nil {
		return nil, err
	}
	if empty {
		return &memoryInput{}, nil
	}
	return &indexInput{run: f.run, walk: a.table.walk(a.index, s)}, nil
}

// span evaluates the bounds of an index. A bound that is NULL matches nothing.
func (a *access) span(f *frame) (s *span, empty bool, err error) {
	s = &span{above: a.above, below: a.below, backwards: a.backwards, notNull: a.notNull, nothing: a.nothing}
	for _, n := range a.equal {
		v, err := n.eval(f)
		if err != nil || v.isNull() {
			return nil, true, err
		}
		s.equal = append(s.equal, v)
	}
	if a.low != nil {
		if s.low, err = a.low.eval(f); err != nil || s.low.isNull() {
			return nil, true, err
		}
	}
	if a.high != nil {
		if s.high, err = a.high.eval(f); err != nil || s.high.isNull() {
			return nil, true, err
		}
	}
	return s, false, nil
}

// queryInput is a subquery as a source.
type queryInput struct{ rows }

func (q queryInput) next() ([]value, *version, error) {
	row, err := q.rows.next()
	return row, nil, err
}

// memoryInput is a view of the catalogue.
type memoryInput struct{ all [][]value }

func (m *memoryInput) next() ([]value, *version, error) {
	if len(m.all) == 0 {
		return nil, nil, nil
	}
	row := m.all[0]
	m.all = m.all[1:]
	return row, nil, nil
}

func (m *memoryInput) close() {}

// heapInput is a whole table.
type heapInput struct {
	run  *run
	left []*version
}

func (h *heapInput) next() ([]value, *version, error) {
	if err := h.run.check(); err != nil {
		return nil, nil, err
	}
	for len(h.left) > 0 {
		v := h.left[0]
		h.left = h.left[1:]
		if h.run.view.sees(v) {
			return v.values, v, nil
		}
	}
	return nil, nil, nil
}

func (h *heapInput) close() { h.left = nil }

// indexInput is a span of an index.
type indexInput struct {
	run  *run
	walk *walk
}

func (x *indexInput) next() ([]value, *version, error) {
	if err := x.run.check(); err != nil {
		return nil, nil, err
	}
	for {
		v := x.walk.next()
		if v == nil {
			return nil, nil, nil
		}
		if x.run.view.sees(v) {
			return v.values, v, nil
		}
	}
}

func (x *indexInput) close() { x.walk.runs = nil }

// check ends an execution that was cancelled, or whose snapshot is too old.
func (r *run) check() error {
	if r.ctx.Err() != nil {
		return refuse(1013)
	}
	return nil
}
