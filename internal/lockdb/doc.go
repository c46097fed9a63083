// Package lockdb is the memory of a cluster: the coordination database. It
// holds the leases (INT_LOCK), cursors, observed rows, the event log, sink
// offsets, nodes and turns, because they must commit together.
//
// # Two databases, one text
//
// PostgreSQL serves a cluster, SQLite the processes of one host. Both run the
// same SQL wherever they can; what differs sits behind [dialect] (how "now" is
// written, how times are bound) and [engine] (the statements that cannot be
// shared, such as acquire, renew and commit).
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
