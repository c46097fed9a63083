package lockdb

// partSQL are the statements of the parts of [DB]. Those of one dialect, or of both, are in the
// files …_sql.go; see Rendering.SQL in package sqldb for their tokens.
type partSQL struct {
	Lease   leaseSQL
	Store   storeSQL
	Commit  commitSQL
	Turn    turnSQL
	Node    nodeSQL
	Stream  streamSQL
	Sweep   sweepSQL
	Account accountSQL
	Pause   pauseSQL
	Sink    sinkSQL
	Parked  parkedSQL
	Dead    deadSQL
	Janitor janitorSQL
	Report  reportSQL

	Operator operationSQL
}

func partTexts(backend string) partSQL {
	texts := partSQL{
		Lease: postgresLeaseSQL, Store: postgresStoreSQL, Commit: postgresCommitSQL,
		Turn: turnTexts, Node: nodeTexts, Stream: streamTexts, Sweep: sweepTexts, Account: accountTexts,
		Pause: pauseTexts, Sink: sinkTexts, Parked: parkedTexts, Dead: deadTexts, Janitor: janitorTexts, Report: reportTexts, Operator: operationTexts,
	}
	if backend == "sqlite" {
		texts.Lease, texts.Store, texts.Commit = sqliteLeaseSQL, sqliteStoreSQL, sqliteCommitSQL
		texts.Turn.NoteStream, texts.Turn.AddPoll = noteStreamSQLite, addPollSQLite
	}
	return texts
}
