package mutant

const (
	publicLease = "locks/lease.go"
	hierarchy   = "locks/hierarchy.go"
	rendering   = "internal/lockdb/sqldb/rendering.go"
	// The statements of general locks.
	generalParts    = "locks/database/statements.go"
	generalBoth     = "locks/database/statements_both.go"
	generalPostgres = "locks/database/statements_postgres.go"
	stealFile       = "locks/database/steal.go"
	provider        = "locks/database/database.go"
	nodeFile        = "internal/app/app.go"
	publicLine      = "locks/line.go"
	publicWait      = "locks/wait.go"
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
		What: "the TTL of one who wants a lock decides when that of its holder is over",
		Edits: []Edit{
			{rendering, "own.term = $a.client_id), $b)`", "own.term = $a.client_id AND FALSE), $b)`"},
			{generalParts, "{ended l COALESCE(o.ttl_ms / 1000.0, want.ttl)}", "{ended l want.ttl}"},
			{generalPostgres, "{ended l COALESCE(o.ttl_ms / 1000.0, $4::float8)}", "{ended l $4::float8}"},
			{generalPostgres, "COALESCE(o.ttl_ms / 1000.0, $4::float8) AS ttl", "$4::float8 AS ttl"},
		},
	}
}

func endOfAMember() Step {
	return Step{
		What: "one of several holders lives for as long as any of them",
		Edits: []Edit{{rendering, `"live": "($x.touched_at >= {ago $x.ttl_ms / 1000.0})",`,
			`"live": "($x.touched_at >= {ago $x.ttl_ms / 1000.0} OR EXISTS (SELECT 1 FROM obs_hold o" +
		" WHERE o.group_term = $x.group_term AND o.touched_at >= {ago o.ttl_ms / 1000.0}))",`}},
	}
}

func turnOfOneWhoWaits() Step {
	return Step{
		What:  "a lock is taken past those who wait for it",
		Edits: []Edit{{generalParts, "behind = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + ahead + `)`", "behind = `(FALSE AND EXISTS (SELECT 1 FROM obs_wait w WHERE ` + ahead + `))`"}},
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
		Edits: []Edit{{generalPostgres, " ORDER BY want.lock_key, want.region\nON CONFLICT", "ON CONFLICT"}},
	}
}

func termThatWasSeen() Step {
	return Step{
		What: "a steal takes the lock from any holder, whoever was seen",
		Edits: []Edit{
			{generalBoth, "  FROM int_lock\n WHERE lock_key = $1 AND region = $2 AND client_id = $3\n", "  FROM int_lock\n WHERE lock_key = $1 AND region = $2\n"},
			{generalBoth, "DELETE FROM int_lock\n WHERE lock_key = $1 AND region = $2 AND client_id = $3\n", "DELETE FROM int_lock\n WHERE lock_key = $1 AND region = $2\n"},
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
			{provider, "PoolSize: o.PoolSize, Logger: o.Logger}", "PoolSize: o.PoolSize, BootID: bootID, Logger: o.Logger}"},
			{provider, "\treturn On(db, o.Logger), nil\n", `	<-db.NewLiveness(liveness.Options{Logger: o.Logger}).Start(context.WithoutCancel(ctx))
	return On(db, o.Logger), nil
`},
			{provider, "// Tx makes a transaction", "var bootID = uuid.NewString()\n\n// Tx makes a transaction"},
			{generalPostgres, "clock_timestamp(), '', '', $8", "clock_timestamp(), '` + bootID + `', '` + liveness.BySession + `', $8"},
			{generalPostgres, "package database\n", "package database\n\nimport \"github.com/observerd/observerd/internal/lockdb/liveness\"\n"},
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
			{rendering, "\"($a.created_date < {utcago \" + holderTTL + \"})\"", "\"($a.created_date < {utcago \" + holderTTL + \"} OR $a.created_date > {utc})\""},
			{rendering, "\"($a.created_date < {utcago $b})\"", "\"($a.created_date < {utcago $b} OR $a.created_date > {utc})\""},
			{rendering, "\"expired\": \"($a.expired_after < {utc}\" + used + \")\"", "\"expired\": \"($a.expired_after < {utc}\" + used + \" OR $a.created_date > {utc})\""},
			{rendering, "\"ended\":   \"($a.expired_after < {utc}\" + used + \")\"", "\"ended\":   \"($a.expired_after < {utc}\" + used + \" OR $a.created_date > {utc})\""},
		},
	}
}
