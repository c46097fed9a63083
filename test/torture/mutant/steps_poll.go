package mutant

const (
	pollFile    = "internal/observer/observer.go"
	partFile    = "internal/observer/part.go"
	marksFile   = "internal/observer/poll.go"
	placeFile   = "internal/observer/place.go"
	rereadFile  = "internal/observer/reread.go"
	compareFile = "internal/observer/compare.go"
	selectFile  = "internal/source/statement.go"
	goneFile    = "internal/observer/gone.go"
	defineFile  = "internal/observer/definition.go"
	wholeFile   = "internal/observer/generation.go"
)

// The steps of a poll.

func horizonBeforeRead() Step {
	return Step{
		Name: "horizon-before-read",
		What: "the horizon is read when the snapshot of the rows is already taken",
		Edits: []Edit{
			{pollFile, "\tif err := p.readHorizon(ctx); err != nil {\n\t\treturn err\n\t}\n", ""},
			{partFile, "ch, err := p.compare(ctx, b)", "if err := p.readHorizon(ctx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tch, err := p.compare(ctx, b)"},
		},
	}
}

func horizon() Step {
	return Step{
		Name: "horizon",
		What: "the low-water mark follows the newest row, whatever transactions are open, and stays above a horizon that shows them later",
		Edits: []Edit{
			{marksFile, `	if p.src.Compare(cursor, p.horizon.Cursor) > 0 {
		cursor = p.horizon.Cursor
	}
`, ""},
			{placeFile, `if earliest != "" && p.src.Compare(earliest, p.next.low) < 0 {`, `if earliest != "" && false {`},
		},
	}
}

func lowWater() Step {
	return Step{
		Name:  "low-water",
		What:  "a poll goes on from the position that the last one had reached, not from the low-water mark",
		Edits: []Edit{{rereadFile, "p.limit, p.began = p.Observer.limit.get(), p.next.low", "p.limit, p.began = p.Observer.limit.get(), p.next.newest"}},
	}
}

func wholeGroups() Step {
	return Step{
		Name:  "whole-groups",
		What:  "a poll begins behind the timestamp of the mark, not at it",
		Edits: []Edit{{selectFile, `w.compare(ts, ">=", bound)`, `w.compare(ts, ">", bound)`}},
	}
}

func dedupe() Step {
	return Step{
		Name:  "dedupe",
		What:  "rows are not compared with what was observed before",
		Edits: []Edit{{compareFile, "known, err := p.st.Observed(ctx, p.cursor, b.keys)", "known, err := map[string]Observed(nil), ctx.Err()"}},
	}
}

func definitionOfCluster() Step {
	return Step{
		Name:  "definition-of-cluster",
		What:  "a node polls by its own definition, whatever that of the cluster is",
		Edits: []Edit{{defineFile, `case own == "" || own == c.Definition:`, `case own == "" || c.Definition != "":`}},
	}
}

func laterDefinition() Step {
	return Step{
		Name:  "later-definition",
		What:  "the definition of a node takes the place of the cluster's, whichever was loaded later",
		Edits: []Edit{{defineFile, "case !p.loaded().After(c.DefinedAt):", "case c.DefinedAt.IsZero() && !p.loaded().IsZero():"}},
	}
}

func goingOn() Step {
	return Step{
		Name:  "going-on",
		What:  "each poll that reads all rows begins with the first",
		Edits: []Edit{{wholeFile, "if !g.stored || !goesOn {", "if true || !goesOn {"}},
	}
}

func seenBefore() Step {
	return Step{
		Name:  "seen-before",
		What:  "a poll that goes on does not know which rows the others have met",
		Edits: []Edit{{wholeFile, "g.seen, g.Seen = decodeBitmap(last.Seen), nil", "g.Seen = nil"}},
	}
}

func disbelief() Step {
	return Step{
		Name:  "disbelief",
		What:  "rows that a snapshot lacks are gone, however many they are",
		Edits: []Edit{{goneFile, "if missing <= max(may, p.allowed(RefusalGone)) {", "if missing <= max(may, p.allowed(RefusalGone), before) {"}},
	}
}
