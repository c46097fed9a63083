package engine

// open starts a block: its sources are read row by row, and nothing is kept but
// what ORDER BY has to. Whatever reads rows refuses by a panic, as the compiler does.
func (bp *blockPlan) open(r *run) rows {
	j := bp.joiner(r)
	if bp.grouping == nil {
		p := &projection{plan: bp, joiner: j, row: make([]value, len(bp.items)+len(bp.sort))}
		if len(bp.sort) == 0 {
			return p
		}
		return bp.sorted(p)
	}
	return bp.gather(j)
}

// project evaluates the items and the sort's columns.
func (bp *blockPlan) project(f *frame, row []value) {
	for i, n := range bp.items {
		row[i] = n.eval(f)
	}
	for i, k := range bp.sort {
		row[len(bp.items)+i] = k.node.eval(f)
	}
}

// projection returns the items of each row that the joiner finds.
type projection struct {
	plan   *blockPlan
	joiner *joiner
	row    []value
}

func (p *projection) next() []value {
	if !p.joiner.next() {
		return nil
	}
	p.plan.project(p.joiner.frame, p.row)
	return p.row
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

func (bp *blockPlan) joiner(r *run) *joiner {
	n := len(bp.accesses)
	f := &frame{run: r, rows: make([][]value, n), versions: make([]*version, n)}
	j := &joiner{plan: bp, frame: f, inputs: make([]input, n), stop: -1, ended: !all(bp.always, f)}
	if bp.stop != nil {
		stop, _ := bp.stop.eval(f).int64()
		j.stop = max(stop, 0)
	}
	return j
}

func (j *joiner) next() bool {
	for !j.ended {
		if j.stop >= 0 && j.count >= j.stop || !j.combine() {
			break
		}
		j.frame.rownum = j.count + 1
		if all(j.plan.late, j.frame) {
			j.count++
			return true
		}
	}
	j.ended = true
	return false
}

// all says whether conditions hold.
func all(conditions []*node, f *frame) bool {
	for _, n := range conditions {
		if !n.eval(f).isTrue() {
			return false
		}
	}
	return true
}

// combine moves on to the next combination of rows.
func (j *joiner) combine() bool {
	depth := len(j.inputs) - 1
	if !j.begun {
		j.begun, depth = true, 0
		j.open(0)
	}
	for depth >= 0 {
		switch {
		case !j.advance(depth):
			j.inputs[depth].close()
			depth--
		case depth == len(j.inputs)-1:
			return true
		default:
			depth++
			j.open(depth)
		}
	}
	return false
}

func (j *joiner) open(depth int) { j.inputs[depth] = j.plan.accesses[depth].open(j.frame) }

// advance finds the next row of one source that satisfies its conditions.
func (j *joiner) advance(depth int) bool {
	a := j.plan.accesses[depth]
	for {
		row, v := j.inputs[depth].next()
		if row == nil {
			return false
		}
		j.frame.rows[depth], j.frame.versions[depth] = row, v
		if all(a.filters, j.frame) {
			return true
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
