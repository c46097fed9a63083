package sourcetest

import "testing"

// Run runs the suite. setup is called once for each test, from its goroutine.
func Run(t *testing.T, setup func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*testing.T, Fixture){
		"rows come in the order of timestamp and key":   order,
		"a source without a timestamp returns all":      noTimestamp,
		"columns are chosen":                            chosenColumns,
		"names match in another case":                   otherCase,
		"a query is read like a table":                  query,
		"NULL timestamps follow the policy":             nullPolicies,
		"compound keys are escaped":                     compoundKeys,
		"numbers stay exact":                            exactNumbers,
		"floating-point numbers stay exact":             exactFloats,
		"text stays as it is":                           unicodeText,
		"extremes arrive as the database writes them":   extremes,
		"faulty rows are poison":                        poisonRows,
		"a row over the limit is poison":                sizeLimit,
		"rows of any size are bounded":                  largeRows,
		"rows of many long columns are bounded":         wideRows,
		"a key too long for an index is poison":         longKey,
		"the data of equal rows is equal":               deterministic,
		"a missing table is named with its neighbours":  missingTable,
		"a missing column is named with its neighbours": missingColumn,
		"a wrong key is told the primary key":           wrongKey,
		"a table that changes between reads":            changedTable,
		"a query that cannot be":                        faultyQueries,
		"a garbled cursor is refused":                   garbledCursor,
		"sessions are read-only":                        readOnly,
		"the plan uses the index":                       plan,
		"a description says what is known":              describe,
		"tables are listed with what keeps their times": tables,
		"an unreachable database":                       unreachable,
		"a read may be closed early":                    closedEarly,
		"a read ends with its context":                  cancelled,
		"many reads at once":                            concurrent,
		"a locked table holds up its own readers alone": lockedTable,
		"a late commit stays above the horizon":         lateCommit,
		"the horizon keeps the overlap":                 overlap,
		"a range begins at a cursor and has bounds":     ranges,
		"a range is for rows with a timestamp":          nullRanges,
		"rows are read in the order of their key":       byKey,
		"keys of each type are gone on from":            keysOfEachType,
		"normal keys are those of a wider column":       widerKeys,
		"a read begins among rows of one timestamp":     withinTies,
		"a read among equal timestamps uses the index":  tiesByIndex,
		"rows of one timestamp stay in their order":     otherTies,
		"keys with NULL are gone on from":               nullTies,
		"rows without a timestamp are gone on from":     undatedRows,
		"an index has to serve the key":                 noKeyOrder,
		"a key is gone on from in its order alone":      otherOrder,
		"the policy for NULL holds for reads by key":    nullByKey,
		"the identity stays":                            identity,
		"an instant is written as a cursor":             cursorAt,
		"the clock parts past and future":               clock,
		"rows say their columns":                        columns,
		"the source explains its plan":                  explained,
		"polls: odd rows cost no other row":             oddOnes,
		"polls: schemas change at random":               changedSchemas,
		"polls: statements end among equal timestamps":  cutTies,
		"polls: rows updated while they are read":       updatedWhileRead,
		"polls: all rows are read by several":           generations,
		"polls: transactions that commit late":          lateCommits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t))
		})
	}
}
