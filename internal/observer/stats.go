package observer

import "time"

// Stats counts what one poll did, up to its end or its failure.
type Stats struct {
	// Rows were read, Events written, Poison rows noted, Chunks committed.
	Rows, Events, Poison, Chunks int64
	// HorizonLag is how far the horizon lay behind the source's clock.
	HorizonLag time.Duration
	// ExactHorizon is [Horizon.Exact].
	ExactHorizon bool
	// Behind is how far the stream lay behind the source's clock at the end:
	// HorizonLag after a full read, else at least the age of the last row that
	// was compared; 0 for a query without a timestamp.
	Behind time.Duration
	// Full says that the poll ended at [Spec.MaxChanged], or with its time, and left
	// rows to the next one.
	Full bool
	// Lag is how far the last row of a full poll lay behind the source's clock; 0 for
	// other polls, and for a query without a timestamp.
	Lag time.Duration
	// Rewound says that the source was another database than before, and was read
	// again from where the stream began.
	Rewound bool
	// Future are the rows whose timestamp lay more than a minute above the
	// source's clock.
	Future int64
}
