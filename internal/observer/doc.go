// Package observer turns the rows of a foreign database into observations and
// observations into events. poll.go has the steps of a poll in order: cursor, identity
// of the source, horizon, marks, then statement by statement a streaming read, the
// comparison with what was observed before, and commits in chunks.
//
// A journal has the cursor and commits; a reading (timeline, apart, generation, or the
// span of a sweep) knows which rows come next; a comparer reads them by statements, and
// makes chunks of them.
//
// What a stream has settled is a single mark, the low-water mark: below it
// every row was observed, and none will appear any more. It follows the
// horizon, and goes back only where that promise was broken: another database
// answers, or the source's time went back. Then more is read than is new, and
// what was observed is recognised, so no event is repeated.
//
// [Observer.Sweep] reads a range below the mark a second time, for what lies
// before the start of a stream or was back-dated.
//
// It knows neither the databases that it reads nor the one that it writes:
// [Source] and [Store] are what it needs of them.
package observer
