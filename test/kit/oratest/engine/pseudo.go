package engine

import "time"

// pseudo compiles the names that are neither columns nor need arguments.
func (c *compiler) pseudo(sc *scope, parts []token) *node {
	if parts[0].kind == tokenQuoted || len(parts) > 1 {
		return nil
	}
	switch parts[0].text {
	case "ROWNUM":
		if sc.grouping != nil && !sc.grouping.inside {
			sc.grouping.refuse(parts[0].pos)
		}
		return &node{typ: plain(typeNumber), rownum: true, eval: func(f *frame) value { return integer(f.rownum) }}
	case "SYSDATE":
		return perRun(plain(typeDate), func(r *run) value { return wall(kindDate, r.now) })
	case "SYSTIMESTAMP":
		return perRun(dataType{name: typeTimestampTZ, scale: 6}, func(r *run) value {
			_, offset := r.now.Zone()
			return instant(kindTimestampTZ, r.now.Truncate(time.Microsecond), offsetName(offset))
		})
	}
	return c.routine(parts[0].text)
}

// perRun is a node that has one value for each execution.
func perRun(typ dataType, eval func(*run) value) *node {
	return &node{typ: typ, eval: func(f *frame) value { return eval(f.run) }}
}
