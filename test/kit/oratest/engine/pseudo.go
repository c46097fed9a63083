package engine

import (
	"strings"
	"time"
)

// pseudo compiles the names that are neither columns nor need arguments.
func (c *compiler) pseudo(sc *scope, parts []token) *node {
	if parts[0].kind == tokenQuoted {
		return nil
	}
	if len(parts) > 1 {
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = p.text
		}
		if strings.TrimPrefix(strings.Join(names, "."), "SYS.") == "DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER" {
			return perRun(plain(typeNumber), func(r *run) (value, error) {
				return integer(int64(r.session.engine.scn.Load())), nil
			})
		}
		return nil
	}
	s := c.session
	switch parts[0].text {
	case "ROWNUM":
		if sc.grouping != nil && !sc.grouping.inside {
			sc.grouping.refuse(parts[0].pos)
		}
		return &node{typ: plain(typeNumber), rownum: true, eval: func(f *frame) (value, error) { return integer(f.rownum), nil }}
	case "SYSDATE":
		return perRun(plain(typeDate), func(r *run) (value, error) { return wall(kindDate, r.now), nil })
	case "CURRENT_DATE":
		return perRun(plain(typeDate), func(r *run) (value, error) { return wall(kindDate, r.now.In(s.zone)), nil })
	case "SYSTIMESTAMP", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP":
		return c.timestamp(parts[0].text, 6)
	case "USER":
		return constant(text(s.user), varchar(128))
	case "UID":
		return constant(integer(int64(s.sid)), plain(typeNumber))
	case "SESSIONTIMEZONE":
		return constant(text(s.zoneName), varchar(75))
	case "DBTIMEZONE":
		return constant(text(zoneName(s.engine.options.DBZone, s.engine.now())), varchar(6))
	case "SYS_GUID":
		return nil
	}
	return c.routine(sc, parts[0].text)
}

// perRun is a node that has one value for each execution.
func perRun(typ dataType, eval func(*run) (value, error)) *node {
	return &node{typ: typ, eval: func(f *frame) (value, error) { return eval(f.run) }}
}

// timestamp is the present instant, in the host's zone or the session's.
func (c *compiler) timestamp(name string, digits int) *node {
	s := c.session
	switch name {
	case "SYSTIMESTAMP":
		return perRun(dataType{name: typeTimestampTZ, scale: digits}, func(r *run) (value, error) {
			_, offset := r.now.Zone()
			return instant(kindTimestampTZ, trim(r.now, digits), offsetName(offset)), nil
		})
	case "CURRENT_TIMESTAMP":
		return perRun(dataType{name: typeTimestampTZ, scale: digits}, func(r *run) (value, error) {
			return instant(kindTimestampTZ, trim(r.now, digits), s.zoneName), nil
		})
	}
	return perRun(dataType{name: typeTimestamp, scale: digits}, func(r *run) (value, error) {
		return wall(kindTimestamp, trim(r.now, digits).In(s.zone)), nil
	})
}

// trim cuts a fraction of a second to so many digits.
func trim(t time.Time, digits int) time.Time {
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return t.Add(-time.Duration(t.Nanosecond()) % max(unit, 1))
}
