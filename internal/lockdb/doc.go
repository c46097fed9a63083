// Package lockdb is the memory of a cluster: the coordination database. It
// holds the leases (INT_LOCK), cursors, observed rows, the event log, sink
// offsets, nodes and turns, because they must commit together.
//
// # Parts
//
// Package sqldb below it knows the pools, the two dialects and the migrations, package
// liveness which process is dead, package eventlog the log and its offsets, and
// package examine reads facts for the doctor. Here is a type for each of the other
// tables. Statements that PostgreSQL and SQLite cannot share, such as acquire, renew
// and commit, are those of an [engine].
//
// # The fenced commit
//
// A commit renews the lease row by its term, advances the cursor by
// compare-and-set, notes observed rows and appends events: all of it in one
// statement (or, for large chunks and on SQLite, one transaction), or nothing.
// A holder whose lease has ended therefore changes nothing, however late it
// arrives. The cursor row is locked by it and hands out the sequence, so the
// order of commits is the order of sequences and no number is skipped.
//
// # Clocks
//
// Every time comes from the database's clock, in UTC, never from that of a node.
package lockdb
