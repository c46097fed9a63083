package mutant

import "github.com/observerd/observerd/test/suite/torture/check"

// All are the mutants, in the order of a turn: lease, poll, commit, delivery, and
// those of general locks, in the database and in Redis, and of the consumer guard.
func All() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{ofLeases(), ofPolls(), ofCommits(), ofDelivery(), ofHolds(), ofRedis(), ofKubernetes(), ofGitHub(), ofGuard()} {
		all = append(all, part...)
	}
	return all
}

// slow has every poll take longer than a sleeper sleeps past its TTL, or the next
// holder would have moved the cursor before it wakes.
const slow = "poll.chunk=sleep:1s-3s@*;"

func ofLeases() []Mutant {
	return []Mutant{
		{
			Name:    "steals-live-leases",
			Without: []Step{livenessInAcquire()},
			Shows:   "A type's lock is only tried when a look found it free, but the relays try theirs every few seconds, and each has it from the one that works.",
			Expect:  []check.Kind{check.StolenLease},
			Witness: "internal/lockdb TestLeasesKeepTheContract",
		},
		{
			Name:    "frees-what-it-is-just-taking",
			Without: []Step{termBeforeItsRow()},
			Shows:   "The look for leases that nobody holds finds the row of an acquisition before the answer to it has come, and deletes it: another node polls beside the one that has just begun.",
			Expect:  []check.Kind{check.Overlap},
			Witness: "internal/lockdb TestTermInFlightIsNotTouched",
			Hints:   Hints{Failpoints: []string{"lease.wanted=sleep:1ms-700ms@*;poll.chunk=sleep:400ms-900ms@*"}},
		},
		{
			Name:    "draws-the-token-early",
			Without: []Step{fenceUnderRowLock()},
			Shows:   "A node that draws its token and is slow to take the lock comes behind one that drew later, took it and gave it back: the tokens of one key run backwards.",
			Expect:  []check.Kind{check.FenceBackwards},
			Witness: "internal/lockdb TestLeasesKeepTheContract",
			Hints:   Hints{Failpoints: []string{"lease.wanted=sleep:1ms-700ms@*"}},
		},
		{
			Name:    "renews-what-has-expired",
			Without: []Step{expiryInRenewal(), trustDeadline(), patienceOfRenewal()},
			Shows:   "A node that wakes after its TTL renews, and has a lease again that everybody took for ended. The deadline of trust covers for the statement, but not where the network holds a renewal back.",
			Expect:  []check.Kind{check.ResurrectedLease},
			Witness: "internal/lockdb TestLeasesKeepTheContract",
			Hints:   Hints{Nodes: 1, Faults: []string{"stop"}, Failpoints: []string{""}},
		},
		{
			Name:    "releases-without-its-term",
			Without: []Step{termInRelease()},
			Shows:   "A node that wakes after its TTL gives back a lock that another holds by now; a third takes it while the second works.",
			Expect:  []check.Kind{check.StolenLease},
			Witness: "internal/lockdb TestLeasesKeepTheContract",
			Hints:   Hints{Failpoints: []string{"poll.chunk=sleep:400ms-900ms@*;lease.release=stop@5"}},
		},
		{
			Name:    "polls-a-turn-twice",
			Without: []Step{lookUnderLock(), turnOfEachObserver()},
			Shows:   "Two nodes look, find the turn free and wait for the lock; both poll. Each observer's own turn covers for the type's, as both are read under the lock.",
			Expect:  []check.Kind{check.PolledTooOften},
			Witness: "internal/schedule TestTurnTakenBetweenLookAndLockIsNotRepeated",
			Hints:   Hints{Failpoints: []string{"lease.wanted=sleep:1ms-700ms@*"}},
		},
		{
			Name:    "trusts-a-lease-for-ever",
			Without: []Step{trustDeadline(), leaseInCommit()},
			Shows:   "A node that slept past its TTL goes on polling and commits. The commit's own renewal covers for the deadline, which only saves useless work.",
			Expect:  []check.Kind{check.StaleCommit},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Failpoints: []string{slow + "poll.chunk=stop@3"}},
		},
		{
			Name:    "frees-leases-of-the-living",
			Without: []Step{absenceOfTheDead(), leaseInCommit()},
			Shows:   "A poll that takes longer than a moment loses its lock to the next node, and commits beside it. The commit's own renewal covers for the judge.",
			Expect:  []check.Kind{check.StaleCommit},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Failpoints: []string{slow}},
		},
	}
}

func ofPolls() []Mutant {
	return []Mutant{
		{
			Name:    "reads-the-horizon-late",
			Without: []Step{horizonBeforeRead()},
			Shows:   "A transaction that is not in the snapshot commits before the horizon is read, which then lies above its rows: the mark passes them unseen.",
			Expect:  []check.Kind{check.Lost},
			Witness: "internal/observer TestCommitBetweenHorizonAndRead",
			Hints:   Hints{Failpoints: []string{"poll.chunk=sleep:500ms-1s@*"}},
		},
		{
			Name:    "has-no-horizon",
			Without: []Step{horizon()},
			Shows:   "A row that commits late lies below the newest row that was seen, and is never read.",
			Expect:  []check.Kind{check.Lost},
			Witness: "internal/observer TestLateCommitsAreObserved",
		},
		{
			Name:    "stores-a-page-position",
			Without: []Step{lowWater()},
			Shows:   "The same: the next poll begins behind the row that commits late.",
			Expect:  []check.Kind{check.Lost},
			Witness: "internal/observer TestLateCommitsAreObserved",
		},
		{
			Name:    "cuts-equal-timestamps",
			Without: []Step{wholeGroups()},
			Shows:   "A chunk ends within rows of one timestamp and the node dies; the next poll begins behind that timestamp.",
			Expect:  []check.Kind{check.Lost},
			Witness: "internal/source/postgres TestCursorEdges",
			Hints: Hints{
				Nodes: 1, ChunkRows: 20, Faults: []string{"pause"},
				Failpoints: []string{"commit.after=kill@60", "commit.after=kill@23", "commit.after=kill@31"},
			},
		},
		{
			Name:    "does-not-compare-rows",
			Without: []Step{dedupe(), plainInserts()},
			Shows:   "The rows between the mark and the newest are read in every poll, and each becomes an event each time. The plain insert covers for the comparison: the commit is refused.",
			Expect:  []check.Kind{check.Duplicated},
			Witness: "internal/observer TestNewMakesOneEventOfAKeyEver",
		},
		{
			Name:    "takes-all-rows-for-new",
			Without: []Step{firstLookUp(), plainInserts()},
			Shows:   "The first chunk of a statement, which begins among rows that are known, is taken for new. The plain insert covers for the look-up: the commit is refused.",
			Expect:  []check.Kind{check.Duplicated, check.Unexpected},
			Witness: "internal/observer TestRowsBehindNewOnesAreTakenForNew",
		},
		{
			Name:    "drops-what-it-carries",
			Without: []Step{carried()},
			Shows:   "The changes of a chunk wait for the next commit, which does not write them; each poll finds them again. With three types the torture reads too slowly for a chunk to wait.",
			Witness: "internal/observer TestFewChangesCommitTogether",
		},
		{
			Name:    "joins-a-question-that-was-asked",
			Without: []Step{laterQuestion()},
			Shows:   "A poll takes the horizon that another one was asking for when it began: older than its beginning, and with a former stamp of the table.",
			Witness: "internal/source TestCallsThatWaitShareTheNextQuestion",
		},
		{
			Name:    "sees-through-functions",
			Without: []Step{hidden()},
			Shows:   "A view that calls a function is not looked through again when the function is another one, such as of a materialized view, whose rows come late.",
			Witness: "internal/source/postgres TestChangesBehindARelationAreNoticed",
		},
		{
			Name:    "begins-with-the-first-row",
			Without: []Step{goingOn()},
			Shows:   "A poll has time for a third of the table, always the first one: the other rows are never read.",
			Expect:  []check.Kind{check.Lost},
			Witness: "internal/observer TestReadingOfASlowSourceComesToItsEnd",
			Hints:   Hints{Faults: []string{"pause"}, Failpoints: []string{""}},
		},
		{
			Name:    "forgets-what-was-met",
			Without: []Step{seenBefore(), disbelief()},
			Shows:   "Rows that earlier polls of a reading have met are told to be gone, and to be new by the next one. The share that may be gone covers for the most part of them.",
			Expect:  []check.Kind{check.MassGone, check.Unexpected},
			Witness: "internal/observer TestSimulatedGenerations",
			Hints:   Hints{Faults: []string{"pause"}, Failpoints: []string{""}},
		},
		{
			Name:    "believes-an-emptied-table",
			Without: []Step{disbelief()},
			Shows:   "A table is empty for a moment, and each of its rows is told to be gone before a person was asked.",
			Expect:  []check.Kind{check.MassGone},
			Witness: "internal/observer TestEmptiedTableIsAccepted",
			Hints:   Hints{Faults: []string{"empty-table"}, Failpoints: []string{""}},
		},
		{
			Name:    "polls-by-its-own-definition",
			Without: []Step{definitionOfCluster()},
			Shows:   "Two nodes have different columns of an observer: each takes the rows that the other has observed for changed, in turns.",
			Expect:  []check.Kind{check.WrongDefinition},
			Witness: "internal/app TestNodesThatDefineAnObserverDifferently",
			Hints:   Hints{Faults: []string{"other-columns"}, Failpoints: []string{""}},
		},
		{
			Name:    "takes-any-definition-back",
			Without: []Step{laterDefinition()},
			Shows:   "The same: each node sets its own definition in its turn.",
			Expect:  []check.Kind{check.WrongDefinition},
			Witness: "internal/app TestNodesThatDefineAnObserverDifferently",
			Hints:   Hints{Faults: []string{"other-columns"}, Failpoints: []string{""}},
		},
	}
}

func ofCommits() []Mutant {
	stops := []string{slow + "commit.before=stop@3", slow + "commit.before=stop@7"}
	return []Mutant{
		{
			Name:    "commits-without-the-lease",
			Without: []Step{leaseInCommit()},
			Shows:   "A node that slept past its TTL with a chunk in its hands commits it. The compare-and-set refuses it only once the next holder has committed.",
			Expect:  []check.Kind{check.StaleCommit},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Failpoints: stops},
		},
		{
			Name:    "commits-under-an-expired-lease",
			Without: []Step{expiryInCommit()},
			Shows:   "The same, as long as nobody has taken the lock: the commit itself brings the lease back.",
			Expect:  []check.Kind{check.StaleCommit, check.ResurrectedLease},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Nodes: 1, Failpoints: stops},
		},
		{
			Name:    "copies-without-the-lease",
			Without: []Step{leaseInCopy()},
			Traffic: []Edit{everyCommitCopies()},
			Shows:   "The same, for the commit of large chunks, which renews the lease last.",
			Expect:  []check.Kind{check.StaleCommit},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Failpoints: []string{"copy.copied=stop@4", "copy.fenced=stop@9"}},
		},
		{
			Name:    "commits-to-a-file-without-the-lease",
			Without: []Step{leaseInFile()},
			Shows:   "The same, for nodes that share a file.",
			Expect:  []check.Kind{check.StaleCommit},
			Witness: "internal/lockdb TestCommitWithoutLeaseWritesNothing",
			Hints:   Hints{Coordination: "sqlite", Failpoints: stops},
		},
		{
			Name:    "commits-any-version",
			Without: []Step{compareAndSet()},
			Shows:   "Where the lease holds, two nodes never commit to one cursor, so what shows is the operator: a poll that runs writes over a pause and over a reset.",
			Expect:  []check.Kind{check.PausedCommit, check.StaleCursor},
			Witness: "internal/lockdb TestCommitFromAnOldCursorWritesNothing",
			Hints:   Hints{Failpoints: []string{"commit.before=sleep:500ms-1s@*"}, Faults: []string{"pause", "reset"}},
		},
		{
			Name:    "commits-whatever-happened",
			Without: []Step{leaseInCommit(), compareAndSet(), plainInserts()},
			Shows:   "The lease, the version and the plain insert cover for each other: without them, a node that wakes commits what the next one had committed already.",
			Expect:  []check.Kind{check.Duplicated, check.StaleCommit, check.CursorBackwards},
			Witness: "internal/lockdb TestCommitFromAnOldCursorWritesNothing",
			Hints:   Hints{Failpoints: stops},
		},
		{
			Name:    "overwrites-what-is-new",
			Without: []Step{serverOfLookup(), versionOfLookup(), plainInserts()},
			Shows:   "A standby does not show the rows that were observed since it lagged: they become events again. The check of the server covers for the version that the rows are read with, and that for the plain insert.",
			Expect:  []check.Kind{check.Duplicated},
			Witness: "internal/lockdb TestLookupFromAnotherCursorIsAConflict",
			Hints:   Hints{Faults: []string{"session-limit"}, Failpoints: []string{""}},
		},
		{
			Name:    "forgets-within-an-epoch",
			Without: []Step{epochOfIDs()},
			Shows:   "After a reset that forgets, rows become events under the ids that they had: the file takes them for repeats, acknowledges them and writes nothing.",
			Expect:  []check.Kind{check.Duplicated, check.SinkLost},
			Witness: "internal/lockdb TestResetKeepsOrForgetsObservedRows",
			Hints:   Hints{Faults: []string{"forget"}, Failpoints: []string{""}},
		},
		{
			Name:    "commits-events-apart",
			Without: []Step{oneTransaction()},
			Shows:   "A node dies between the two: its rows are known, and will never be events.",
			Expect:  []check.Kind{check.Lost, check.HalfBatch},
			Witness: "internal/lockdb TestCommitWritesAllOfAChunk",
			Hints:   Hints{Failpoints: []string{"commit.after=kill@5", "commit.after=kill@9", "commit.after=kill@14"}},
		},
		{
			Name:    "takes-unknown-as-failed",
			Without: []Step{unknownIsNotFailed(), plainInserts()},
			Shows:   "The answer to a commit is lost and the chunk sent again: its events are there twice, unless the plain insert refuses them. To give up instead would do no harm, since the next poll knows what was committed.",
			Expect:  []check.Kind{check.Duplicated},
			Witness: "internal/lockdb TestCommitWhoseAnswerIsLost",
			Hints:   Hints{Faults: []string{"lost-answer"}, Failpoints: []string{""}},
		},
		{
			Name:    "takes-unknown-as-done",
			Without: []Step{unknownIsNotDone(), versionOfLookup(), compareAndSet()},
			Shows:   "A commit that never arrived is skipped, and the next chunk moves the mark past its rows. The version that observed rows are read with, and the compare-and-set, would refuse that chunk.",
			Expect:  []check.Kind{check.Lost, check.CursorBackwards},
			Witness: "internal/lockdb TestCommitWhoseAnswerIsLost",
			Hints:   Hints{ChunkRows: 20, Faults: []string{"orphan", "cut", "stall"}, Failpoints: []string{""}},
		},
	}
}

func ofDelivery() []Mutant {
	return []Mutant{
		{
			Name:    "moves-the-offset-first",
			Without: []Step{storeBeforeOffset()},
			Shows:   "A relay dies between the two: the sink never gets the batch.",
			Expect:  []check.Kind{check.SinkLost},
			Witness: "internal/relay TestRelayAcknowledgesTheStoredPrefixOnly",
			Hints:   Hints{Failpoints: []string{"relay.moved=kill@5", "relay.moved=kill@9", ""}},
		},
		{
			Name:    "moves-the-offset-too-far",
			Without: []Step{acknowledgedPrefix()},
			Traffic: []Edit{smallWrites()},
			Shows:   "The sink takes a batch in parts and the relay dies after the first: the rest is never delivered.",
			Expect:  []check.Kind{check.SinkLost},
			Witness: "internal/relay TestRelayAcknowledgesTheStoredPrefixOnly",
			Hints:   Hints{Failpoints: []string{"relay.moved=kill@5", "relay.moved=kill@9", ""}},
		},
		{
			Name:    "takes-repeats",
			Without: []Step{repeatsInSink()},
			Shows:   "A relay dies when the sink has a batch and the offset does not say so: it is delivered again.",
			Expect:  []check.Kind{check.SinkDuplicated},
			Witness: "internal/sink/file TestKilled",
			Hints:   Hints{Failpoints: []string{"relay.stored=kill@5", "relay.stored=kill@9", ""}},
		},
		{
			Name:    "acknowledges-other-events",
			Without: []Step{eventsOfBatch()},
			Shows:   "The log goes back while a batch is stored and not acknowledged, and other events take its sequences: they are skipped, and the offset says that all is delivered.",
			Witness: "internal/lockdb TestAcknowledgesWhatTheLogHolds",
		},
		{
			Name:    "acknowledges-on-another-server",
			Without: []Step{serverOfBatch()},
			Shows:   "The same, where the last event comes again in its place, behind others.",
			Witness: "internal/lockdb TestAcknowledgesWhatTheLogHolds",
		},
		{
			Name:    "acknowledges-from-any-offset",
			Without: []Step{offsetOfBatch()},
			Shows:   "The same, where the events of the batch come again as they were, but those between the offset that went back and the batch are others.",
			Witness: "internal/lockdb TestAcknowledgesWhatTheLogHolds",
		},
		{
			Name:    "moves-the-position-apart",
			Without: []Step{positionWithEvents()},
			Shows:   "The connection breaks between the two: the events are there, and the position says that they are not.",
			Witness: "internal/sink/sqlsink TestContract",
		},
		{
			Name:    "moves-a-kafka-position-apart",
			Without: []Step{positionInKafkasTransaction()},
			Shows:   "A relay dies between the two transactions: the topic has the events, and gets them again.",
			Witness: "test/suite/sinks TestContract",
		},
		{
			Name:    "fences-no-producer",
			Without: []Step{fenceOfKafka()},
			Shows:   "A relay that slept past its lease commits its batch beside the one that leads.",
			Witness: "test/suite/sinks TestContract",
		},
		{
			Name:    "claims-for-any-term",
			Without: []Step{epochOfTheClaim()},
			Shows:   "A relay that slept past its lease opens its sink again, and takes it from the one that leads.",
			Witness: "internal/sink/sqlsink TestAnEarlierTermLearnsOfTheLaterOne",
		},
		{
			Name:    "reads-nothing-back",
			Without: []Step{readBack()},
			Shows:   "The target is restored and lacks its last second, or an answer was lost: nobody notices.",
			Witness: "internal/relay TestRelayComparesItsSink",
		},
		{
			Name:    "stores-for-anybody",
			Without: []Step{sessionOfTheFeed(), positionsOfTheFeed()},
			Shows:   "A batch of a relay that slept past its lease arrives behind those of the next one.",
			Witness: "internal/sink/sqlsink TestLateBatchOfAFormerSessionIsRefused",
		},
		{
			Name:    "stores-behind-a-gap",
			Without: []Step{positionsOfTheFeed()},
			Shows:   "A target fails over behind a pooler, and has lost its last second: the connection does not show it.",
			Witness: "internal/sink/sqlsink TestATargetThatWentBackStoresNothing",
		},
		{
			Name:    "overtakes-the-parked",
			Without: []Step{followersOfTheParked()},
			Shows:   "A target refuses an event of a key: later ones of the key come before it.",
			Witness: "internal/relay TestRelayParksWhatASinkRefuses",
		},
	}
}

func ofHolds() []Mutant {
	return []Mutant{
		{
			Name:    "guards-nothing",
			Without: []Step{endInGuard()},
			Shows:   "A program sleeps past its TTL, wakes when another has the lock, and writes under it.",
			Expect:  []check.Kind{check.StaleWrite},
			Witness: "locks/database TestGuard",
			Hints:   Hints{Programs: true, Nodes: 1, Faults: []string{"stop-program"}},
		},
		{
			Name:    "believes-its-own-ttl",
			Without: []Step{ttlOfTheHolder()},
			Shows:   "A program whose locks have a TTL of 2 s takes one of 10 s from another, which renews it every 3 s.",
			Expect:  []check.Kind{check.StolenHold},
			Witness: "internal/lockdb TestLeasesKeepTheContract",
			Hints:   Hints{Programs: true, Nodes: 1, Faults: []string{"pause"}},
		},
		{
			Name:    "frees-general-locks",
			Without: []Step{ttlOfTheDead()},
			Shows:   "A program is cut off and trusts its lease for its TTL; a node finds its session gone, and another program has the lock.",
			Expect:  []check.Kind{check.StolenHold, check.StaleWrite},
			Witness: "cmd/observerd TestCommandOfAHolderThatIsCutOffEndsFirst",
			Hints:   Hints{Programs: true, Nodes: 1, Faults: []string{"kill-program", "refuse-program"}},
		},
		{
			Name:    "takes-what-is-dated-ahead",
			Without: []Step{dateInTheFuture()},
			Shows:   "The database's clock goes back, and every lease is taken from its holder; no fault of a run sets that clock.",
			Witness: "internal/lockdb TestLeasesKeepTheContract",
		},
		{
			Name:    "keeps-dead-readers",
			Without: []Step{endOfAMember()},
			Shows:   "A reader that has died keeps a writer out for as long as others read. A writer that waits for longer is no violation in a run.",
			Witness: "internal/lockdb TestLeasesKeepTheContract",
		},
		{
			Name:    "passes-those-who-wait",
			Without: []Step{turnOfOneWhoWaits()},
			Shows:   "Readers that come and go starve a writer. The same: waiting is no violation.",
			Witness: "internal/lockdb TestLeasesKeepTheContract",
		},
		{
			Name:    "starves-sets",
			Without: []Step{linesOfASet()},
			Shows:   "Users of single locks keep a set of them from ever finding all free. The same: waiting is no violation.",
			Witness: "locks TestSetIsNotStarved",
		},
		{
			Name:    "waits-for-its-own-set",
			Without: []Step{locksOfAHolder()},
			Shows:   "A holder that wants another lock waits for a set that waits for its own. The same.",
			Witness: "locks TestSetDoesNotBlockTheHolderItWaitsFor",
		},
		{
			Name:    "leaves-places-behind",
			Without: []Step{placeInLine()},
			Shows:   "The place of a caller that a look noted while it was served keeps everybody from the free lock for 5 s. The same.",
			Witness: "locks TestOneWhoIsServedLeavesNoPlace",
		},
		{
			Name:    "locks-sets-in-any-order",
			Without: []Step{orderOfASet()},
			Shows:   "Two sets in opposite orders wait for each other, until the lock_timeout of one is over: they get nothing done, and nothing wrong.",
			Witness: "internal/lockdb TestSetsLockTheirRowsInOneOrder",
		},
		{
			Name:    "steals-from-anybody",
			Without: []Step{termThatWasSeen()},
			Shows:   "An operator who has seen one holder takes the lock from another that came since; nobody steals under torture.",
			Witness: "internal/lockdb TestLeasesKeepTheContract",
		},
		{
			Name:    "takes-no-intents",
			Without: []Step{intentsAbove()},
			Shows:   "A program writes below a fileset, with intents on it, and another has the whole fileset.",
			Expect:  []check.Kind{check.StaleWrite, check.StolenHold},
			Witness: "locks TestIntentsAbove",
			Hints:   Hints{Programs: true, Nodes: 1, Faults: []string{"pause"}},
		},
		{
			Name:    "extends-in-memory",
			Without: []Step{extensionOfTheRow()},
			Shows:   "A program renews an extended lease by the new TTL, and others take it when that of before is over.",
			Expect:  []check.Kind{check.StolenHold},
			Witness: "internal/lock TestLeaseOutlivesAFailedExtension",
			Hints:   Hints{Programs: true, Nodes: 1, Faults: []string{"pause"}},
		},
	}
}

// ofRedis are tried by tests alone: the torture has a coordination database and no Redis.
func ofRedis() []Mutant {
	return []Mutant{
		{
			Name:    "redis-releases-without-its-term",
			Without: []Step{termInRedisRelease()},
			Shows:   "A holder that wakes after its TTL gives back a lock that another holds by now.",
			Witness: "internal/lock/redislock TestContract",
		},
		{
			Name:    "redis-renews-without-its-term",
			Without: []Step{termInRedisRenewal()},
			Shows:   "A holder that wakes after its TTL renews the lock of another, and trusts it.",
			Witness: "internal/lock/redislock TestContract",
		},
		{
			Name:    "redis-forgets-the-last-fence",
			Without: []Step{lastFenceInRedis()},
			Shows:   "The clock of Redis goes back, and the next holder has a smaller fence than the last one.",
			Witness: "internal/lock/redislock TestClockThatWasSetBack",
		},
		{
			Name:    "redis-tells-nobody",
			Without: []Step{messageOfRedisRelease()},
			Shows:   "A registry of Spring waits for as long as it may, though the lock is free.",
			Witness: "internal/lock/redislock TestReleaseIsPublished",
		},
		{
			Name:    "redis-keeps-dead-readers",
			Without: []Step{endOfARedisMember()},
			Shows:   "A reader that has died keeps a writer out for as long as others read.",
			Witness: "internal/lock/redislock TestContract",
		},
		{
			Name:    "redis-keeps-what-it-has-not-said",
			Without: []Step{answerOfRedisThatIsLost()},
			Shows:   "Nobody has the lock whose answer was lost, until its TTL is over.",
			Witness: "internal/lock/redislock TestLostAnswer",
		},
	}
}

// ofKubernetes are tried by tests alone, too.
func ofKubernetes() []Mutant {
	return []Mutant{
		{
			Name:    "kubernetes-believes-clocks",
			Without: []Step{observationOfALease()},
			Shows:   "The clock of a holder is an hour behind, and another takes its lock while it works.",
			Witness: "internal/lock/kubelease TestStories",
		},
		{
			Name:    "kubernetes-deletes-what-is-there",
			Without: []Step{preconditionsOfADelete()},
			Shows:   "One whose lease has ended releases the lock of the next holder.",
			Witness: "internal/lock/kubelease TestStories",
		},
		{
			Name:    "kubernetes-takes-what-is-there",
			Without: []Step{conflictOfACreate()},
			Shows:   "Two have the lock.",
			Witness: "internal/lock/kubelease TestStories",
		},
		{
			Name:    "kubernetes-believes-old-notes",
			Without: []Step{noteOfTheHolder()},
			Shows:   "Another program has taken the Lease and kept our annotations: its lock is taken for our own.",
			Witness: "internal/lock/kubelease TestStories",
		},
	}
}

// ofGitHub are tried by tests alone, too.
func ofGitHub() []Mutant {
	return []Mutant{
		{
			Name:    "github-moves-by-force",
			Without: []Step{fastForward()},
			Shows:   "Two have read the same reference, and both have the lock.",
			Witness: "internal/lock/githublock TestContract",
		},
		{
			Name:    "github-sees-no-heartbeat",
			Without: []Step{observationOfAComment()},
			Shows:   "Another takes the lock of a holder that works.",
			Witness: "internal/lock/githublock TestStories",
		},
		{
			Name:    "github-renews-any-term",
			Without: []Step{termInTheCommit()},
			Shows:   "A holder whose lock was taken goes on to renew it.",
			Witness: "internal/lock/githublock TestStories",
		},
		{
			Name:    "github-looks-once",
			Without: []Step{secondLook()},
			Shows:   "A machine wakes while its lock is taken: both work.",
			Witness: "internal/lock/githublock TestHolderThatComesBackMeanwhile",
		},
	}
}

// ofGuard are tried by tests alone, too: the torture has no consumers.
func ofGuard() []Mutant {
	return []Mutant{
		{
			Name:    "guard-takes-no-key",
			Without: []Step{keyInTheDatabase()},
			Shows:   "The lease of one ends while it sleeps, and another calls the gateway while the first one commits.",
			Witness: "guard TestSecondWaitsForTheTransaction",
		},
		{
			Name:    "guard-sees-the-state-of-before",
			Without: []Step{isolationOfTheGuard()},
			Shows:   "The second one has waited for the first one's commit, and does not see it.",
			Witness: "guard TestSecondWaitsForTheTransaction",
		},
		{
			Name:    "guard-notes-outside",
			Without: []Step{inboxInTheTransaction()},
			Shows:   "The event is in the inbox, its effects were rolled back, and it is never processed.",
			Witness: "guard TestCommitThatIsRefused",
		},
		{
			Name:    "guard-remembers-too-early",
			Without: []Step{seenAfterTheCommit()},
			Shows:   "The same: the event was seen, and is never processed.",
			Witness: "guard TestSeen",
		},
		{
			Name:    "guard-releases-too-early",
			Without: []Step{releaseAfterTheCommit()},
			Shows:   "Another has the lock, and the first one has not committed yet.",
			Witness: "guard TestDo",
		},
		{
			Name:    "guard-believes-in-failure",
			Without: []Step{answerToTheCommit()},
			Shows:   "The bus is told that nothing was committed, and a person that the event has failed, though it was applied.",
			Witness: "guard TestCommitThatIsNotAnswered",
		},
	}
}
