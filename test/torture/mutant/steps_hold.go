package mutant

const (
	publicLease  = "locks/lease.go"
	hierarchy    = "locks/hierarchy.go"
	lockTable    = "internal/lockdb/sqldb/locktable_sql.go"
	holdsFile    = "internal/lockdb/hold.go"
	holdPostgres = "internal/lockdb/hold_postgres.go"
	lineFile     = "internal/lockdb/line.go"
	stealFile    = "internal/lockdb/steal.go"
)

// The steps of general locks.

func endInGuard() Step {
	return Step{
		What:  "the guard of a general lock refuses nothing",
		Edits: []Edit{{publicLease, "if err == nil && n == 0 {\n\t\terr = ErrFenced", "if err == nil && n < 0 {\n\t\terr = ErrFenced"}},
	}
}

func ttlOfTheHolder() Step {
	return Step{
		What:  "the TTL of one who wants a lock decides when that of its holder is over",
		Edits: []Edit{{lockTable, "if strings.Contains(other, HolderTTL) {", "if other != \"\" || strings.Contains(other, HolderTTL) {"}},
	}
}

func endOfAMember() Step {
	return Step{
		What: "one of several holders lives for as long as any of them",
		Edits: []Edit{{holdsFile, "const liveHoldSQL = `(h.touched_at >= {ago h.ttl_ms / 1000.0} AND ",
			"const liveHoldSQL = `((h.touched_at >= {ago h.ttl_ms / 1000.0} OR EXISTS (SELECT 1 FROM obs_hold o" +
				" WHERE o.group_term = h.group_term AND o.touched_at >= {ago o.ttl_ms / 1000.0})) AND "}},
	}
}

func turnOfOneWhoWaits() Step {
	return Step{
		What:  "a lock is taken past those who wait for it",
		Edits: []Edit{{lineFile, "var behindSQL = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `)`", "var behindSQL = `(FALSE AND EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `))`"}},
	}
}

func orderOfASet() Step {
	return Step{
		What:  "the rows of a set are locked in the order in which they were asked for",
		Edits: []Edit{{holdPostgres, " ORDER BY want.lock_key, want.region\nON CONFLICT", "ON CONFLICT"}},
	}
}

func termThatWasSeen() Step {
	return Step{
		What: "a steal takes the lock from any holder, whoever was seen",
		Edits: []Edit{
			{stealFile, "AND client_id = $3\n   AND NOT EXISTS", "AND NOT EXISTS"},
			{stealFile, "AND client_id = $3`", "AND $3 <> ''`"},
			{stealFile, "if err == nil && mark != seen.Mark {", "if err == nil && mark == \"\" {"},
		},
	}
}

func intentsAbove() Step {
	return Step{
		What:  "no intents are taken on what is above a lock",
		Edits: []Edit{{hierarchy, "above, ok := all.above(d.Subject, len(d.Resources))", "above, ok := []string(nil), len(all) > 0"}},
	}
}

func extensionOfTheRow() Step {
	return Step{
		What:  "an extension is not written",
		Edits: []Edit{{heldLease, "err := provider.Extend(ctx, g, ttl)", "_, err := provider, context.Cause(ctx)"}},
	}
}
