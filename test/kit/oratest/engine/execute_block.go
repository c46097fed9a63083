package engine

// open starts a block: its sources are read row by row, and nothing is kept but
// what GROUP BY and ORDER BY have to.
func (bp *blockPlan) open(r *run, parent *frame) (rows, error) {
	f := &frame{run: r, parent: parent, rows: make([][]value, len(bp.accesses)), versions: make([]*version, len(bp.accesses))}
	j := &joiner{plan: bp, frame: f, inputs: make([]input, len(bp.accesses)), stop: -1}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	if bp.grouping == nil {
		p := &projection{plan: bp, joiner: j, row: make([]value, len(bp.items)+len(bp.sort))}
		if len(bp.sort) == 0 {
			return p, nil
		}
		return sortRows(p, bp.sortPositions())
	}
	g, err := bp.gather(j)
	if err != nil || len(bp.sort) == 0 {
		return g, err
	}
	return sortRows(g, bp.sortPositions())
}

// sortPositions are the sort's columns behind the visible ones.
func (bp *blockPlan) sortPositions() []sortKey {
	keys := make([]sortKey, len(bp.sort))
	for i, k := range bp.sort {
		k.position, k.visible = len(bp.items)+i, len(bp.items)
		keys[i] = k
	}
	return keys
}

// project evaluates the items and the sort's columns.
func (bp *blockPlan) project(f *frame, row []value) error {
	for i, n := range bp.items {
		v, err := n.eval(f)
		if err != nil {
			return err
		}
		row[i] = v
	}
	for i, k := range bp.sort {
		v, err := k.node.eval(f)
		if err != nil {
			return err
		}
		row[len(bp.items)+i] = v
	}
	return nil
}

// projection returns the items of each row that the joiner finds.
type projection struct {
	plan   *blockPlan
	joiner *joiner
	row    []value
}

func (p *projection) next() ([]value, error) {
	ok, err := p.joiner.next()
	if !ok || err != nil {
		return nil, err
	}
	return p.row, p.plan.project(p.joiner.frame, p.row)
}

func (p *projection) close() { p.joiner.close() }

// joiner finds the rows of all sources that satisfy the conditions, the last
// source moving fastest.
type joiner struct {
	plan   *blockPlan
	frame  *frame
	inputs []input
	begun  bool
	ended  bool
	count  int64 // of rows returned, ROWNUM
	stop   int64 // no row is looked for after so many; -1 for no limit
}

func (j *joiner) prepare() error {
	for _, n := range j.plan.always {
		v, err := n.eval(j.frame)
		if err != nil {
			return err
		}
		j.ended = j.ended || !v.isTrue()
	}
	if j.plan.stop == nil {
		return nil
	}
	v, err := j.plan.stop.eval(j.frame)
	if err != nil {
		return err
	}
	j.stop, _ = floor(v).int64()
	if j.plan.stopOpen && compareNumbers(floor(v), v) == 0 {
		j.stop--
	}
	j.stop = max(j.stop, 0)
	return nil
}

func (j *joiner) next() (bool, error) {
	for !j.ended {
		if j.stop >= 0 && j.count >= j.stop {
			break
		}
		ok, err := j.combine()
		if !ok || err != nil {
			j.ended = true
			return false, err
		}
		j.frame.rownum = j.count + 1
		if ok, err = all(j.plan.late, j.frame); err != nil {
			return false, err
		}
		if ok {
			j.count++
			return true, nil
		}
	}
	j.ended = true
	return false, nil
}

// all says whether conditions hold.
func all(conditions []*node, f *frame) (bool, error) {
	for _, n := range conditions {
		v, err := n.eval(f)
		if err != nil || !v.isTrue() {
			return false, err
		}
	}
	return true, nil
}

// combine moves on to the next combination of rows.
func (j *joiner) combine() (bool, error) {
	depth := len(j.inputs) - 1
	if !j.begun {
		j.begun, depth = true, 0
		if err := j.open(0); err != nil {
			return false, err
		}
	}
	for depth >= 0 {
		ok, err := j.advance(depth)
		if err != nil {
			return false, err
		}
		switch {
		case !ok:
			j.inputs[depth].close()
			depth--
		case depth == len(j.inputs)-1:
			return true, nil
		default:
			depth++
			if err := j.open(depth); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (j *joiner) open(depth int) error {
	var err error
	j.inputs[depth], err = j.plan.accesses[depth].open(j.frame)
	return err
}

// advance finds the next row of one source that satisfies its conditions.
func (j *joiner) advance(depth int) (bool, error) {
	a := j.plan.accesses[depth]
	for {
		row, v, err := j.inputs[depth].next()
		if err != nil {
			return false, err
		}
		if row == nil {
			return false, nil
		}
		j.frame.rows[depth], j.frame.versions[depth] = row, v
		ok, err := all(a.filters, j.frame)
		if ok || err != nil {
			return ok, err
		}
	}
}

func (j *joiner) close() {
	for _, in := range j.inputs {
		if in != nil {
			in.close()
		}
	}
	j.ended = true
}
