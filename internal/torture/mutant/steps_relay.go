package mutant

const (
	relayFile = "internal/events/round.go"
	fileSink  = "internal/events/sink/file/deliver.go"
)

// The steps of a delivery.

func storeBeforeOffset() Step {
	return Step{
		Name: "store-before-offset",
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
		Name:  "acknowledged-prefix",
		What:  "the offset moves to the end of the batch, however much of it the sink has stored",
		Edits: []Edit{{relayFile, "Events: batch[:stored]}", "Events: batch}"}},
	}
}

// smallWrites makes the file sink store a batch in many parts.
func smallWrites() Edit { return Edit{fileSink, "const maxText = 1 << 20", "const maxText = 1 << 10"} }

func repeatsInSink() Step {
	return Step{
		Name:  "repeats-in-sink",
		What:  "the file takes an event that it holds already",
		Edits: []Edit{{fileSink, "!twice && !s.recent.has(id)", "!twice"}},
	}
}
