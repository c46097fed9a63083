package mutant

const (
	relayFile   = "internal/relay/round.go"
	planFile    = "internal/relay/plan.go"
	compareSink = "internal/relay/compare.go"
	parkingFile = "internal/relay/parking.go"
	logFile     = "internal/lockdb/eventlog/log_sql.go"
	fileSink    = "internal/sink/file/deliver.go"
	sqlFile     = "internal/sink/sqlsink/sink.go"
	sqlTexts    = "internal/sink/sqlsink/statements.go"
)

// The steps of a delivery.

func storeBeforeOffset() Step {
	return Step{
		What: "the offset moves before the sink has stored the batch",
		Edits: []Edit{{relayFile, "\tstored, rejected, err := t.offer(ctx, slices.Concat(wanted...), t.sink.Deliver)\n", `	for i := range next {
		t.unsettled = append(t.unsettled, events.Step{After: next[i].after, Events: next[i].events})
	}
	if err := t.settle(ctx); err != nil {
		return 0, nil, err
	}
	stored, rejected, err := t.offer(ctx, slices.Concat(wanted...), t.sink.Deliver)
`}},
	}
}

func acknowledgedPrefix() Step {
	return Step{
		What:  "the offset moves to the end of the batch, however much of it the sink has stored",
		Edits: []Edit{{planFile, "\n\treturn p.before(n)\n", "\n\t_ = n\n\treturn *p\n"}},
	}
}

// smallWrites makes the file sink store a batch in many parts.
func smallWrites() Edit { return Edit{fileSink, "const maxText = 1 << 20", "const maxText = 1 << 10"} }

func repeatsInSink() Step {
	return Step{
		What:  "the file takes an event that it holds already",
		Edits: []Edit{{fileSink, "!s.fresh[id] && !s.recent.known[id]", "!s.fresh[id]"}},
	}
}

func eventsOfBatch() Step {
	return Step{
		What: "the offset moves past a batch of the relay whatever events the log has in its place",
		Edits: []Edit{
			{logFile, "c.epoch = $2{share})\n   AND m.ids = (", "c.epoch = $2{share})\n   AND '' <> ("},
			{logFile, "AND CASE WHEN m.server = '' THEN m.ids = (", "AND CASE WHEN m.server = '' THEN '' <> ("},
			{logFile, "ELSE m.server = {server} AND m.ids = (", "ELSE m.server = {server} AND '' <> ("},
		},
	}
}

func serverOfBatch() Step {
	return Step{
		What:  "the offset moves past a batch whose last event the log has, on whatever server",
		Edits: []Edit{{logFile, "ELSE m.server = {server} AND m.ids = (", "ELSE m.ids = ("}},
	}
}

func offsetOfBatch() Step {
	return Step{
		What: "the offset moves on from wherever it stands, not only from where the batch was read",
		Edits: []Edit{
			{logFile, "AND o.last_seq IN (m.after_seq, m.last_seq)", "AND o.last_seq <= m.last_seq"},
			{logFile, "FOR UPDATE) IN (m.after_seq, m.last_seq)", "FOR UPDATE) <= m.last_seq"},
		},
	}
}

func positionWithEvents() Step {
	return Step{
		What: "a SQL sink moves the position in a transaction of its own, behind the events",
		Edits: []Edit{{sqlFile, "\tn, err := s.transact(ctx, statement, args...)\n", `	stored := slices.Concat(args[:6], positionColumns(nil), args[10:])
	n, err := s.transact(ctx, statement, stored...)
	if err == nil {
		n, err = s.transact(ctx, statement, slices.Concat(args[:10], eventColumns(nil))...)
	}
`}},
	}
}

func readBack() Step {
	return Step{
		What:  "the relay does not ask a sink what it has stored",
		Edits: []Edit{{compareSink, "\tif !ok {\n", "\tif !ok || resumer != nil {\n"}},
	}
}

func sessionOfTheFeed() Step {
	return Step{
		What:  "a SQL sink stores whoever has claimed it",
		Edits: []Edit{{sqlTexts, "f.epoch = $3::bigint AND f.event_id = $4::uuid", "$4::uuid IS NOT NULL"}},
	}
}

func positionsOfTheFeed() Step {
	return Step{
		What:  "a SQL sink stores wherever its positions are",
		Edits: []Edit{{sqlTexts, "WHERE NOT EXISTS (SELECT FROM {schema}.obs_feed r", "WHERE FALSE AND NOT EXISTS (SELECT FROM {schema}.obs_feed r"}},
	}
}

func followersOfTheParked() Step {
	return Step{
		What:  "later events of a parked key are delivered",
		Edits: []Edit{{parkingFile, "return ok && e.Seq >= k.first", "return ok && k.reason != \"\""}},
	}
}

func positionInKafkasTransaction() Step {
	return Step{
		What: "a Kafka sink writes the positions in a transaction of their own, behind the events",
		Edits: []Edit{{"internal/sink/kafka/kafka.go", "\t\tfor _, end := range result.Stored {\n\t\t\tif moves {\n\t\t\t\tproduce(", `	})
	if err != nil {
		return sink.Result{}, err
	}
	err = s.transact(ctx, func(produce func(*kgo.Record)) {
		for _, end := range result.Stored {
			if moves {
				produce(`}},
	}
}

func epochOfTheClaim() Step {
	return Step{
		What:  "a SQL sink takes the claim of any term",
		Edits: []Edit{{sqlTexts, "WHERE f.epoch <= EXCLUDED.epoch OR $5::boolean", "WHERE f.epoch IS NOT NULL OR $5::boolean"}},
	}
}

func fenceOfKafka() Step {
	const kafkaSink = "internal/sink/kafka/kafka.go"
	return Step{
		What: "each term of a Kafka sink is a producer of its own, which fences no former one",
		Edits: []Edit{
			{kafkaSink, "kgo.TransactionalID(o.transactionalID())", `kgo.TransactionalID(fmt.Sprintf("%s-%p", o.transactionalID(), s))`},
			{kafkaSink, "kmsg.StringPtr(s.opts.transactionalID())", `kmsg.StringPtr(fmt.Sprintf("%s-%p", s.opts.transactionalID(), s))`},
		},
	}
}
