package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
)

// defineFixed makes the V$ views, which need a grant.
func (e *Engine) defineFixed() {
	e.fixed("TRANSACTION", "ADDR:r XIDUSN:n XIDSLOT:n XIDSQN:n STATUS START_TIME START_SCN:n START_DATE:d SES_ADDR:r FLAG:n USED_UBLK:n USED_UREC:n NAME", e.transactionRows)
	e.fixed("DATABASE", "DBID:n NAME CREATED:d RESETLOGS_CHANGE#:n RESETLOGS_TIME:d RESETLOGS_ID:n LOG_MODE OPEN_MODE DATABASE_ROLE DB_UNIQUE_NAME CURRENT_SCN:n PLATFORM_NAME FLASHBACK_ON CDB", e.databaseRows)
	e.fixed("INSTANCE", "INSTANCE_NUMBER:n INSTANCE_NAME HOST_NAME VERSION STARTUP_TIME:d STATUS PARALLEL THREAD#:n ARCHIVER DATABASE_STATUS INSTANCE_ROLE", e.instanceRows)
	e.fixed("DATAGUARD_STATS", "NAME VALUE UNIT TIME_COMPUTED DATUM_TIME", func(*run, int) [][]value { return nil })
}

// address is what stands for the place of something in memory.
func address(kind byte, n uint64) value {
	b := binary.BigEndian.AppendUint64(nil, uint64(kind)<<40|n<<4)
	return raw(string(b))
}

// transactionRows are the open transactions that have changed something.
func (e *Engine) transactionRows(_ *run, instance int) [][]value {
	e.open.mu.Lock()
	defer e.open.mu.Unlock()
	var all [][]value
	for _, t := range e.open.open {
		if t.instance != instance {
			continue
		}
		begun := t.begun.In(e.options.OSZone)
		segment, slot, sequence := t.xid()
		all = append(all, row(
			address(1, t.id), segment, slot, sequence, "ACTIVE", begun.Format("01/02/06 15:04:05"),
			int64(t.startSCN), wall(kindDate, begun), address(2, uint64(t.session.sid)), 3587, 1, 1, null))
	}
	slices.SortFunc(all, func(a, b []value) int { return cmp.Compare(a[3].n, b[3].n) })
	return all
}

func (e *Engine) databaseRows(*run, int) [][]value {
	d := e.Database()
	log := wall(kindDate, d.Created)
	return [][]value{row(
		d.DBID, d.Name, log, d.ResetlogsChange, log, d.ResetlogsID, "ARCHIVELOG", d.OpenMode, d.Role, d.UniqueName,
		int64(e.scn.Load()), d.Platform, "NO", "NO")}
}

func (e *Engine) instanceRows(_ *run, instance int) [][]value {
	d := e.Database()
	parallel := "NO"
	name := d.Instance
	if e.options.Instances > 1 {
		parallel, name = "YES", d.Instance+strconv.Itoa(instance)
	}
	return [][]value{row(
		instance, name, d.Host, d.FullVersion, wall(kindDate, d.Created), "OPEN", parallel, instance, "STARTED", "ACTIVE", "PRIMARY_INSTANCE")}
}

// userenv is SYS_CONTEXT('USERENV', …).
func (s *session) userenv(namespace, name string) value {
	if !equalFold(namespace, "USERENV") {
		return null
	}
	d := s.engine.Database()
	module, action, client := s.labels()
	answers := map[string]string{
		"SESSION_USER": s.user, "CURRENT_USER": s.user, "CURRENT_SCHEMA": s.schema, "SID": strconv.Itoa(s.sid),
		"SESSIONID": strconv.Itoa(s.sid + 4000), "DB_NAME": d.Name, "DB_UNIQUE_NAME": d.UniqueName, "SERVICE_NAME": "oratest",
		"INSTANCE": strconv.Itoa(s.instance), "INSTANCE_NAME": d.Instance, "SERVER_HOST": d.Host, "DATABASE_ROLE": d.Role,
		"MODULE": module, "ACTION": action, "CLIENT_IDENTIFIER": client, "LANGUAGE": "AMERICAN_AMERICA.AL32UTF8",
		"NLS_DATE_FORMAT": s.nls["NLS_DATE_FORMAT"], "CON_NAME": d.Name, "CON_ID": "1", "ISDBA": "FALSE", "HOST": "host",
		"OS_USER": "os", "TERMINAL": "unknown", "DB_DOMAIN": "", "LANG": "US",
	}
	answer, ok := answers[upper(name)]
	if !ok {
		panic(refuse(2003))
	}
	return text(answer)
}
