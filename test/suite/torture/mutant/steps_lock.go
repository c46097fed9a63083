package mutant

const (
	leaseFile     = "internal/lockdb/lease.go"
	leasePostgres = "internal/lockdb/lease_postgres.go"
	leaseSQL      = "internal/lockdb/lease_sql.go"
	whoIsDead     = "internal/lockdb/liveness/look.go"
	sessionsFile  = "internal/lockdb/liveness/presence_sql.go"
	heldLease     = "internal/lock/lease.go"
	renewals      = "internal/lock/renew.go"
	turnFile      = "internal/schedule/turn.go"
	readyFile     = "internal/schedule/poll.go"
)

// The steps of a lease and of a turn.

func livenessInAcquire() Step {
	return Step{
		What: "an acquisition takes the row whether its lease lives or not",
		Edits: []Edit{
			{leaseSQL, "AND {expired l $4::float8}\n  RETURNING", "AND ({expired l $4::float8} OR TRUE)\n  RETURNING"},
			{generalPostgres, "WHERE was.expired AND NOT was.grouped", "WHERE NOT was.grouped"},
			{generalPostgres, "\n                    AND {ended l was.ttl})", ")"},
		},
	}
}

func termBeforeItsRow() Step {
	return Step{
		What: "the process knows a term as its own only once the acquisition was answered",
		Edits: []Edit{
			{leaseFile, "\tl.terms.Store(g.Term, true)\n\terr := ", "\terr := "},
			{leaseFile, "\tl.db.NoteLocked(", "\tfailpoint.Hit(\"lease.wanted\")\n\tl.terms.Store(g.Term, true)\n\tl.db.NoteLocked("},
			{leaseFile, "\t\"github.com/observerd/observerd/internal/lock\"\n", "\t\"github.com/observerd/observerd/internal/failpoint\"\n\t\"github.com/observerd/observerd/internal/lock\"\n"},
		},
	}
}

func fenceUnderRowLock() Step {
	return Step{
		What: "the fencing token is drawn before the lock's row is",
		Edits: []Edit{
			{leaseSQL, "nextval('obs_fence')", "$11::bigint"},
			{leasePostgres, "\terr = e.db.Acquire.QueryRowContext(", `	var early int64
	if err := e.db.Lease.QueryRowContext(ctx, "SELECT nextval('"+e.db.Table("obs_fence").Sanitize()+"')").Scan(&early); err != nil {
		return 0, before, err
	}
	failpoint.Hit("lease.wanted")
	err = e.db.Acquire.QueryRowContext(`},
			{leasePostgres, "by.liveness, g.Metadata)", "by.liveness, g.Metadata, early)"},
			{leasePostgres, "\t\"github.com/observerd/observerd/internal/lock\"\n", "\t\"github.com/observerd/observerd/internal/failpoint\"\n\t\"github.com/observerd/observerd/internal/lock\"\n"},
		},
	}
}

func expiryInRenewal() Step {
	return Step{
		What:  "a renewal brings a lease back that had expired",
		Edits: []Edit{{leaseSQL, "   WHERE {alive l want.ttl}\n   ORDER BY", "   ORDER BY"}},
	}
}

func termInRelease() Step {
	return Step{
		What:  "a release deletes the lock's row whoever holds it by now",
		Edits: []Edit{{sessionsFile, "AND client_id = $3 AND {unsynced}{skip})`", "AND CAST($3 AS TEXT) IS NOT NULL AND {unsynced}{skip})`"}},
	}
}

func trustDeadline() Step {
	return Step{
		What:  "the work of a lease goes on when the lease cannot be trusted any more",
		Edits: []Edit{{heldLease, "if l.ended != nil || time.Now().Before(l.trusted) {", "if l.ended != nil || !l.trusted.IsZero() {"}},
	}
}

func patienceOfRenewal() Step {
	return Step{
		What:  "a renewal is sent also when trust in its lease is over",
		Edits: []Edit{{renewals, "d = min(d, l.TTL()/4, l.trustedUntil().Sub(now))", "d = min(d, l.TTL()/4)"}},
	}
}

func lookUnderLock() Step {
	return Step{
		What:  "the turn is not read again under the lock",
		Edits: []Edit{{turnFile, "\tif err == nil && r.taken(state) {\n\t\terr = errTaken\n\t}\n", ""}},
	}
}

func turnOfEachObserver() Step {
	return Step{
		What: "an observer that was polled for this turn is polled again",
		Edits: []Edit{{readyFile, "return !last.Paused && !polled && !r.inBackoff(ctx, o, last, now)",
			"_ = polled\n\treturn !last.Paused && !r.inBackoff(ctx, o, last, now)"}},
	}
}

func absenceOfTheDead() Step {
	return Step{
		What: "a node whose session is there is judged as one that is gone, and its leases are freed",
		Edits: []Edit{
			{whoIsDead, "absent[boot] = !alive", "absent[boot] = !alive || alive"},
			{sessionsFile, "AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE CAST(objid AS TEXT) = $6::text AND ` + advisoryLocks + `)\n     FOR UPDATE", "AND $6::text IS NOT NULL\n     FOR UPDATE"},
		},
	}
}
