package mutant

const (
	pollFile       = "internal/observer/poll.go"
	journalFile    = "internal/observer/journal.go"
	statementFile  = "internal/observer/statement.go"
	initMarksFile  = "internal/observer/init_marks.go"
	timelineFile   = "internal/observer/timeline.go"
	compareFile    = "internal/observer/compare.go"
	selectFile     = "internal/source/statement.go"
	goneFile       = "internal/observer/gone.go"
	definitionFile = "internal/observer/definition.go"
	generationFile = "internal/observer/generation.go"
	togetherFile   = "internal/source/together.go"
	readsFile      = "internal/source/postgres/reads.go"
)

// The steps of a poll.

func horizonBeforeRead() Step {
	return Step{
		What: "the horizon is read when the snapshot of the rows is already taken",
		Edits: []Edit{
			{pollFile, "\tif err := p.readHorizon(ctx); err != nil {\n\t\treturn err\n\t}\n", ""},
			{statementFile, "done, err := c.takeOrRepeat(ctx, rows, by, b)", "if err := c.readHorizon(ctx); err != nil {\n\t\treturn unfinished, err\n\t}\n\tdone, err := c.takeOrRepeat(ctx, rows, by, b)"},
		},
	}
}

func horizon() Step {
	return Step{
		What: "the low-water mark follows the newest row, whatever transactions are open, and stays above a horizon that shows them later",
		Edits: []Edit{
			{journalFile, `	if j.src.Compare(cursor, j.horizon.Cursor) > 0 {
		cursor = j.horizon.Cursor
	}
`, ""},
			{initMarksFile, `if earliest != "" && o.src.Compare(earliest, o.next.Low) < 0 {`, `if earliest != "" && false {`},
		},
	}
}

func lowWater() Step {
	return Step{
		What:  "a poll goes on from the position that the last one had reached, not from the low-water mark",
		Edits: []Edit{{timelineFile, "began: j.next.Low}", "began: j.next.Newest}"}},
	}
}

func wholeGroups() Step {
	return Step{
		What:  "a poll begins behind the timestamp of the mark, not at it",
		Edits: []Edit{{selectFile, `w.compare(ts, ">=", &parts)`, `w.compare(ts, ">", &parts)`}},
	}
}

func dedupe() Step {
	return Step{
		What:  "rows are not compared with what was observed before",
		Edits: []Edit{{compareFile, "if known, err = c.st.Observed(ctx, c.cursor, b.keys); err != nil {", "if err = ctx.Err(); err != nil {"}},
	}
}

func definitionOfCluster() Step {
	return Step{
		What:  "a node polls by its own definition, whatever that of the cluster is",
		Edits: []Edit{{definitionFile, `case own == "" || own == c.Definition:`, `case own == "" || c.Definition != "":`}},
	}
}

func laterDefinition() Step {
	return Step{
		What:  "the definition of a node takes the place of the cluster's, whichever was loaded later",
		Edits: []Edit{{definitionFile, "case !j.spec.Loaded().After(c.DefinedAt):", "case c.DefinedAt.IsZero() && !j.spec.Loaded().IsZero():"}},
	}
}

func goingOn() Step {
	return Step{
		What:  "each poll that reads all rows begins with the first",
		Edits: []Edit{{generationFile, "if !g.stored || !goesOn {", "if true || !goesOn {"}},
	}
}

func seenBefore() Step {
	return Step{
		What:  "a poll that goes on does not know which rows the others have met",
		Edits: []Edit{{generationFile, "g.seen, g.Seen = decodeBitmap(last.Seen), nil", "g.Seen = nil"}},
	}
}

func disbelief() Step {
	return Step{
		What:  "rows that a snapshot lacks are gone, however many they are",
		Edits: []Edit{{goneFile, "if missing <= max(may, g.allowed(RefusalGone)) {", "if missing <= max(may, g.allowed(RefusalGone), before) {"}},
	}
}

func firstLookUp() Step {
	return Step{
		What:  "the first rows of a statement are not looked up",
		Edits: []Edit{{statementFile, "c.guess = false // It may begin among rows that were committed.", "c.guess = true"}},
	}
}

func carried() Step {
	return Step{
		What:  "a commit does not take along what is carried",
		Edits: []Edit{{journalFile, "\tch.follow(j.carried)\n", ""}},
	}
}

func hidden() Step {
	return Step{
		What:  "a view that reads more than the catalogue says is explained in each poll",
		Edits: []Edit{{readsFile, "\treturn len(rows) == 1 && !yes(rows[0][0]), err\n", "\treturn len(rows) == 1, err\n"}},
	}
}

func laterQuestion() Step {
	return Step{
		What: "a call joins a question to the source that was asked before it came",
		Edits: []Edit{{togetherFile, "\tt.mu.Lock()\n\tt.next = nil\n\tt.mu.Unlock()\n\tif q.err == nil {",
			"\tdefer func() {\n\t\tt.mu.Lock()\n\t\tt.next = nil\n\t\tt.mu.Unlock()\n\t}()\n\tif q.err == nil {"}},
	}
}
