package mutant

const (
	relayFile = "internal/relay/round.go"
	planFile  = "internal/relay/plan.go"
	logFile   = "internal/lockdb/eventlog/log_sql.go"
	fileSink  = "internal/sink/file/deliver.go"
)

// The steps of a delivery.

func storeBeforeOffset() Step {
	return Step{
		What: "the offset moves before the sink has stored the batch",
		Edits: []Edit{{relayFile, "\tstored, rejected, err := t.hand(ctx, parts)\n", `	for i := range parts {
		t.unsettled = append(t.unsettled, events.Step{After: parts[i].after, Events: parts[i].events})
	}
	if err := t.settle(ctx); err != nil {
		return 0, nil, err
	}
	stored, rejected, err := t.hand(ctx, parts)
`}},
	}
}

func acknowledgedPrefix() Step {
	return Step{
		What:  "the offset moves to the end of the batch, however much of it the sink has stored",
		Edits: []Edit{{planFile, "Events: p.events[:end], Stored", "Events: p.events, Stored"}},
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
		What:  "the offset moves past a batch of the relay whatever events the log has in its place",
		Edits: []Edit{{logFile, "AND m.ids = (", "AND '' <> ("}},
	}
}

func offsetOfBatch() Step {
	return Step{
		What:  "the offset moves on from wherever it stands, not only from where the batch was read",
		Edits: []Edit{{logFile, "AND o.last_seq IN (m.after_seq, m.last_seq)", "AND o.last_seq <= m.last_seq"}},
	}
}
