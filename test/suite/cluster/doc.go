// Package cluster holds the tests of whole clusters, and nothing else:
// several nodes on one real coordination database, in the tests' own process
// where a node is asked to share, as real processes where it has to be killed,
// stopped, cut off or starved.
//
// A story ends with the same question, whatever has happened in it (see
// checkHistory): is each row of the source in the event log and in the file of
// the sink, once, in the order of its stream? And it proves that its fault
// really bit, by a counter or a mark, or it fails.
package cluster
