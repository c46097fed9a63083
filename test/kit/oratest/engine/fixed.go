package engine

import (
	"cmp"
	"slices"
)

// defineFixed makes the V$ views, which need a grant, with the columns that the product
// reads.
func (e *Engine) defineFixed() {
	e.fixed("TRANSACTION", "XIDUSN:n XIDSLOT:n XIDSQN:n STATUS START_DATE:d", e.transactionRows)
	e.fixed("DATABASE", "DBID:n RESETLOGS_CHANGE#:n", func(int) [][]value {
		d := e.Database()
		return [][]value{row(d.DBID, d.ResetlogsChange)}
	})
	e.fixed("INSTANCE", "INSTANCE_NUMBER:n PARALLEL", func(instance int) [][]value {
		parallel := "NO"
		if e.options.Instances > 1 {
			parallel = "YES"
		}
		return [][]value{row(instance, parallel)}
	})
	e.fixed("DATAGUARD_STATS", "NAME VALUE", func(int) [][]value { return nil })
}

// transactionRows are the open transactions that have changed something.
func (e *Engine) transactionRows(instance int) [][]value {
	if instance != 1 { // All sessions are there.
		return nil
	}
	e.open.mu.Lock()
	defer e.open.mu.Unlock()
	var all [][]value
	for _, t := range e.open.open {
		segment, slot, sequence := t.xid()
		all = append(all, row(segment, slot, sequence, "ACTIVE", wall(kindDate, t.begun.In(e.options.OSZone))))
	}
	slices.SortFunc(all, func(a, b []value) int { return cmp.Compare(a[2].n, b[2].n) })
	return all
}

// userenv is SYS_CONTEXT('USERENV', …).
func (s *session) userenv(namespace, name string) value {
	d := s.engine.Database()
	answers := map[string]string{
		"CURRENT_SCHEMA": s.user, "DB_UNIQUE_NAME": d.UniqueName, "DATABASE_ROLE": d.Role, "CON_NAME": d.Name,
	}
	answer, ok := answers[name]
	if !ok || namespace != "USERENV" {
		panic(refuse(2003))
	}
	return text(answer)
}
