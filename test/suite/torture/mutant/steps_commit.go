package mutant

const (
	store        = "internal/lockdb/store.go"
	commitOne    = "internal/lockdb/commit_postgres.go"
	commitTexts  = "internal/lockdb/commit_sql.go"
	commitInFile = "internal/lockdb/commit_sqlite.go"
	operatorSQL  = "internal/lockdb/operator_sql.go"
	poolsFile    = "internal/lockdb/sqldb/postgres.go"
)

// The steps of a commit.

func leaseInCommit() Step {
	return Step{
		What: "the statement that commits does not renew the lease by its term, nor ask for it",
		Edits: []Edit{{commitTexts, `
  UPDATE int_lock l
     SET {touch $4::float8}
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive l $4::float8}
  RETURNING 1
`, `
  SELECT 1 FROM held WHERE ($1::text, $2::text, $3::text, $4::float8) IS NOT NULL
`}},
	}
}

func leaseInFile() Step {
	return Step{
		What:  "a commit to SQLite goes on whether it could renew the lease or not",
		Edits: []Edit{{commitInFile, "\tif !leased {", "\tif !leased && ctx.Err() != nil {"}},
	}
}

func expiryInCommit() Step {
	return Step{
		What: "the commit renews the lease by its term, whether it has expired or not",
		Edits: []Edit{{commitTexts,
			"AND client_id = $3 AND {alive l $4::float8}\n  RETURNING 1",
			"AND client_id = $3 AND $4::float8 IS NOT NULL\n  RETURNING 1"}},
	}
}

func leaseInCopy() Step {
	return Step{
		What: "a commit that copies ends with COMMIT, whatever the renewal before it said",
		Edits: []Edit{{commitOne,
			"return verdict(renewed.RowsAffected() == 1, advanced.RowsAffected() == 1)",
			"_ = renewed\n\treturn verdict(true, advanced.RowsAffected() == 1)"}},
	}
}

// everyCommitCopies sends chunks of any size through COPY.
func everyCommitCopies() Edit { return Edit{commitOne, "copyFrom  = 2000", "copyFrom  = 1"} }

func compareAndSet() Step {
	return Step{
		What: "the commit advances the cursor whatever its version, paused or not",
		Edits: []Edit{
			{commitTexts, "WHERE c.stream_id = $5 AND c.version = $6 AND NOT c.paused", "WHERE c.stream_id = $5 AND $6::bigint IS NOT NULL"},
			{commitTexts, "WHERE stream_id = $1 AND version = $2 AND NOT paused", "WHERE stream_id = $1 AND CAST($2 AS BIGINT) IS NOT NULL"},
		},
	}
}

func plainInserts() Step {
	return Step{
		What: "a row that is new to a poll is written over the one that is there",
		Edits: []Edit{{commitTexts, "FROM seen WHERE n <= $25", `FROM seen WHERE n <= $25
  ON CONFLICT (stream_id, key) DO UPDATE
     SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone`}},
	}
}

func serverOfLookup() Step {
	return Step{
		What: "what was observed is looked up in sessions of their own, which may be with a standby",
		Edits: []Edit{
			{poolsFile, "\tdb.Read = db.Main\n", `	db.Read = db.Main
	anyConfig := mainConfig.Copy()
	anyConfig.ValidateConnect = nil
	anyServer = open(anyConfig, o.PoolSize)
`},
			{poolsFile, "// Millis is a duration", "var anyServer *sql.DB\n\n// Millis is a duration"},
			{poolsFile, "\terr := db.Native(ctx, func(conn *pgx.Conn) error {\n\t\trows, err :=", `	pool := db.Main
	if strings.HasPrefix(what, "look up observed rows") {
		pool = anyServer
	}
	err := native(ctx, pool, func(conn *pgx.Conn) error {
		rows, err :=`},
		},
	}
}

func versionOfLookup() Step {
	return Step{
		What:  "what was observed is looked up whatever the version of the cursor beside it",
		Edits: []Edit{{store, "if err == nil && !current {", "if err == nil && !current && false {"}},
	}
}

func epochOfIDs() Step {
	return Step{
		What:  "a stream that is made to forget its rows stays in its epoch",
		Edits: []Edit{{operatorSQL, "row_count = 0, live_count = 0, epoch = epoch + 1", "row_count = 0, live_count = 0"}},
	}
}

func oneTransaction() Step {
	return Step{
		What: "rows and marks commit first, and their events in a transaction of their own",
		Edits: []Edit{{store, "err := sqldb.Redacted(s.node.engine.commit(ctx, s.grant, &ch))", `rows, evs := ch, ch
	rows.Events, rows.After.LastSeq = nil, ch.Before.LastSeq
	evs.New, evs.Changed, evs.Dead = nil, nil, nil
	err := sqldb.Redacted(s.node.engine.commit(ctx, s.grant, &rows))
	if err == nil && len(ch.Events) > 0 {
		failpoint.Hit("commit.after")
		evs.Before.Version, evs.After.Version = ch.After.Version, ch.After.Version+1
		ch.Before.Version, ch.After.Version = evs.Before.Version, evs.After.Version
		err = sqldb.Redacted(s.node.engine.commit(ctx, s.grant, &evs))
	}`}},
	}
}

func unknownIsNotFailed() Step {
	return Step{
		What: "a commit whose answer was lost is taken as failed: the chunk is sent again, from the cursor as it now is",
		Edits: []Edit{{store, "err = s.resolve(ctx, &ch, err)", `if now, failed := s.Cursor(ctx, ch.Before.Stream); failed == nil {
			ch.Before = now
			ch.Advance(ch.After)
			err = s.node.engine.commit(ctx, s.grant, &ch)
		}`}},
	}
}

func unknownIsNotDone() Step {
	return Step{
		What:  "a commit whose answer was lost is taken as done: the poll goes on behind it",
		Edits: []Edit{{store, "err = s.resolve(ctx, &ch, err)", "err = nil"}},
	}
}
