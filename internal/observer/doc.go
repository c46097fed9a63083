// Package observer turns the rows of a foreign database into observations and
// observations into events. [Observer.Poll] is the whole of it, in order:
// cursor, horizon, one streaming read, comparison with what was observed
// before, and commits in chunks.
//
// It knows neither the databases that it reads nor the one that it writes:
// [Source] and [Store] are what it needs of them.
package observer
