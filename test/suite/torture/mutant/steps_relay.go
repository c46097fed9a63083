package mutant

const (
	relayFile = "internal/events/round.go"
	logFile   = "internal/lockdb/eventlog/log_sql.go"
	fileSink  = "internal/events/sink/file/deliver.go"
)

// The steps of a delivery.

func storeBeforeOffset() Step {
	return Step{
		What: "the offset moves before the sink has stored the batch",
		Edits: []Edit{{relayFile, "\tstored, err = t.hand(ctx, batch)\n", `	t.unsettled = &Stored{After: after, Events: batch}
	if err := t.settle(ctx); err != nil {
		return 0, err
	}
	stored, err = t.hand(ctx, batch)
`}},
	}
}

func acknowledgedPrefix() Step {
	return Step{
		What:  "the offset moves to the end of the batch, however much of it the sink has stored",
		Edits: []Edit{{relayFile, "Events: batch[:stored]}", "Events: batch}"}},
	}
}

// smallWrites makes the file sink store a batch in many parts.
func smallWrites() Edit { return Edit{fileSink, "const maxText = 1 << 20", "const maxText = 1 << 10"} }

func repeatsInSink() Step {
	return Step{
		What:  "the file takes an event that it holds already",
		Edits: []Edit{{fileSink, "!twice && !s.recent.has(id)", "!twice"}},
	}
}

func eventsOfBatch() Step {
	return Step{
		What: "the offset moves past a batch of the relay whatever events the log has in its place",
		Edits: []Edit{{logFile, `
         FROM {numbered $7} b
        CROSS JOIN obs_event e
        WHERE e.stream = $2 AND e.seq = CAST($3 AS BIGINT) - CAST($6 AS BIGINT) + b.n AND CAST(e.event_id AS TEXT) = b.value
          AND e.seq > CAST($3 AS BIGINT) - CAST($6 AS BIGINT) AND e.seq <= CAST($3 AS BIGINT))
`, `
         FROM {numbered $7} b
        WHERE CAST($3 AS BIGINT) > 0)
`}},
	}
}

func offsetOfBatch() Step {
	return Step{
		What:  "the offset moves on from wherever it stands, not only from where the batch was read",
		Edits: []Edit{{logFile, "WHERE o.last_seq IN (CAST($5 AS BIGINT), excluded.last_seq)", "WHERE o.last_seq <= excluded.last_seq"}},
	}
}
