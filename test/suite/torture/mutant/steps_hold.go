package mutant

const (
	publicLease  = "locks/lease.go"
	hierarchy    = "locks/hierarchy.go"
	lockTable    = "internal/lockdb/sqldb/locktable_sql.go"
	holdsFile    = "internal/lockdb/hold.go"
	holdPostgres = "internal/lockdb/hold_postgres.go"
	lineFile     = "internal/lockdb/line.go"
	stealFile    = "internal/lockdb/steal.go"
	provider     = "locks/database/database.go"
	nodeFile     = "internal/app/app.go"
	publicLine   = "locks/line.go"
	publicWait   = "locks/wait.go"
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
		Edits: []Edit{{holdsFile, "const liveHoldSQL = `(h.touched_at >= {ago h.ttl_ms / 1000.0})",
			"const liveHoldSQL = `((h.touched_at >= {ago h.ttl_ms / 1000.0} OR EXISTS (SELECT 1 FROM obs_hold o" +
				" WHERE o.group_term = h.group_term AND o.touched_at >= {ago o.ttl_ms / 1000.0})))"}},
	}
}

func turnOfOneWhoWaits() Step {
	return Step{
		What:  "a lock is taken past those who wait for it",
		Edits: []Edit{{lineFile, "var behindSQL = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `)`", "var behindSQL = `(FALSE AND EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `))`"}},
	}
}

func linesOfASet() Step {
	return Step{
		What:  "a set waits in the line of one of its locks",
		Edits: []Edit{{publicLine, "requests: slices.Clone(requests), wake:", "requests: slices.Clone(requests[:1]), wake:"}},
	}
}

func locksOfAHolder() Step {
	return Step{
		What:  "a holder does not say which locks it holds",
		Edits: []Edit{{publicWait, "r.Place.Priority, r.Holds = how.priority, holds", "r.Place.Priority, r.Holds, _ = how.priority, nil, holds"}},
	}
}

func placeInLine() Step {
	return Step{
		What:  "a caller's place goes by the statement alone that grants the lock",
		Edits: []Edit{{publicLine, "if w.noted {", "if w.noted && w == nil {"}},
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
		Edits: []Edit{{heldLease, "err := extender.Extend(ctx, g, ttl)", "_, err := extender, context.Cause(ctx)"}},
	}
}

func ttlOfTheDead() Step {
	return Step{
		What: "general locks are freed when the session of their process is gone",
		Edits: []Edit{
			{provider, "PoolSize: o.PoolSize, Logger: o.Logger}", "PoolSize: o.PoolSize, BootID: uuid.NewString(), Logger: o.Logger}"},
			{provider, "\treturn &provider{db.Leases(), db}, nil\n", `	<-db.NewLiveness(liveness.Options{Logger: o.Logger}).Start(context.WithoutCancel(ctx))
	return &provider{db.Leases(), db}, nil
`},
			{provider, "\t\"github.com/jackc/pgx/v5\"\n", "\t\"github.com/google/uuid\"\n\t\"github.com/jackc/pgx/v5\"\n"},
			{provider, "\t\"github.com/observerd/observerd/internal/lockdb/sqldb\"\n", "\t\"github.com/observerd/observerd/internal/lockdb/liveness\"\n\t\"github.com/observerd/observerd/internal/lockdb/sqldb\"\n"},
			{nodeFile, "Regions: a.cfg.Scheduler.LockRegions(),", "Regions: append(a.cfg.Scheduler.LockRegions(), \"LOCKS\"),"},
		},
	}
}

func dateInTheFuture() Step {
	return Step{
		What: "a lease that is dated in the future has expired",
		Edits: []Edit{
			{lockTable, "\"{expired}\", \"(\"+over+\")\",", "\"{expired}\", \"(\"+over+\" OR \"+row+\".created_date > {utc})\","},
			{lockTable, "\"{expired by o}\", \"(\"+overByO+\")\",", "\"{expired by o}\", \"(\"+overByO+\" OR \"+row+\".created_date > {utc})\","},
		},
	}
}
