package lockdb

// partSQL are the statements of the parts of [DB], each of which has its own in its file; see
// Rendering.SQL in package sqldb for their tokens.
type partSQL struct {
	Leases   leaseSQL
	Store    storeSQL
	Commit   commitSQL
	Turns    turnSQL
	Nodes    nodeSQL
	Streams  streamSQL
	Sweeps   sweepSQL
	Accounts accountSQL
	Pauses   pauseSQL
	Dead     deadSQL
	Janitor  janitorSQL
	Report   reportSQL

	Operations operationSQL
}

func partTexts(backend string) partSQL {
	texts := partSQL{
		Leases: postgresLeaseSQL, Store: postgresStoreSQL, Commit: postgresCommitSQL,
		Turns: turnTexts, Nodes: nodeTexts, Streams: streamTexts, Sweeps: sweepTexts, Accounts: accountTexts,
		Pauses: pauseTexts, Dead: deadTexts, Janitor: janitorTexts, Report: reportTexts, Operations: operationTexts,
	}
	if backend == "sqlite" {
		texts.Leases, texts.Store, texts.Commit = sqliteLeaseSQL, sqliteStoreSQL, sqliteCommitSQL
		texts.Turns.NoteStream, texts.Turns.AddPoll = noteStreamSQLite, addPollSQLite
	}
	return texts
}
