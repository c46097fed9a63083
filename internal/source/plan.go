package source

// Plan is how a database would run a read.
type Plan struct {
	// Text is the plan as the database words it.
	Text string
	// FullScan are the large tables that are read whole, each with its size as "name (about
	// N rows)".
	FullScan []string
	// Sorts says that the rows are sorted, where an index could have served.
	Sorts bool
	// Warnings are full sentences on what only the plan tells, as on what a view
	// reads.
	Warnings []string
}

// LargeTable is the number of rows from which reading a whole table in every
// poll is worth a warning.
const LargeTable = 100_000
