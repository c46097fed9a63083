package lockdb

// partSQL are the statements of the parts of [DB], each of which has its own in its file; see
// Rendering.SQL in package sqldb for their tokens.
type partSQL struct {
	Turns    turnSQL
	Nodes    nodeSQL
	Streams  streamSQL
	Sweeps   sweepSQL
	Accounts accountSQL
	Pauses   pauseSQL
	Dead     deadSQL
	Janitor  janitorSQL
	Report   reportSQL
}

func partTexts(backend string) partSQL {
	texts := partSQL{turnTexts, nodeTexts, streamTexts, sweepTexts, accountTexts, pauseTexts, deadTexts, janitorTexts, reportTexts}
	if backend == "sqlite" {
		texts.Turns.NoteStream, texts.Turns.AddPoll = noteStreamSQLite, addPollSQLite
	}
	return texts
}
