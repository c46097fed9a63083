package mutant

const (
	guardFile  = "guard/guard.go"
	guardInbox = "guard/inbox.go"
)

// The steps of the consumer guard.

func keyInTheDatabase() Step {
	return Step{
		What:  "the guard does not take its key in the database",
		Edits: []Edit{{guardInbox, "pg_advisory_xact_lock($3)::text", "$3::bigint::text"}},
	}
}

func isolationOfTheGuard() Step {
	return Step{
		What: "the guard begins with the isolation that is the default",
		Edits: []Edit{
			{guardInbox, "&sql.TxOptions{Isolation: sql.LevelReadCommitted}", "nil"},
			{guardInbox, "pgx.TxOptions{IsoLevel: pgx.ReadCommitted}", "pgx.TxOptions{}"},
		},
	}
}

func inboxInTheTransaction() Step {
	return Step{
		What: "the guard notes an event in a transaction of its own",
		Edits: []Edit{{guardInbox, "n, err := t.exec(t.ctx, g.texts.note, g.opts.Consumer, e.id, e.key, fence, t.mark)", `o, err := g.begin(t.ctx, time.Now())
		if err != nil {
			return err
		}
		defer o.end()
		var set string
		if err := o.ask(o.ctx, question{"SELECT set_config('observerd.guard', $1, true)", []any{t.mark}, []any{&set}}); err != nil {
			return err
		}
		n, err := o.exec(o.ctx, g.texts.note, g.opts.Consumer, e.id, e.key, fence, t.mark)
		if err == nil {
			err = o.commit(o.ctx)
		}`}},
	}
}

func seenAfterTheCommit() Step {
	return Step{
		What:  "the guard remembers an event before it is committed",
		Edits: []Edit{{guardFile, "\toutcome, err := g.apply(", "\tg.remember(ctx, e)\n\toutcome, err := g.apply("}},
	}
}

func releaseAfterTheCommit() Step {
	return Step{
		What:  "the guard releases the lock before it commits",
		Edits: []Edit{{guardFile, "\treturn g.commit(t, l, e)\n", "\tif err := l.Release(context.WithoutCancel(t.ctx)); err != nil {\n\t\treturn \"\", err\n\t}\n\treturn g.commit(t, l, e)\n"}},
	}
}

func answerToTheCommit() Step {
	return Step{
		What:  "the guard takes a commit without an answer for one that has failed",
		Edits: []Edit{{guardFile, "\tcase !isUnknown(err):\n", "\tcase true:\n"}},
	}
}
