// Package file appends events as JSON lines to a file: each line whole, each
// event once, and nothing reported as stored before it is on the disk.
//
// # Repeats
//
// A relay delivers a batch again when it does not know whether the first
// attempt was acknowledged: after a crash, or after an answer that was lost.
// The sink recognises such events by their ids, which it reads from the end of
// the file when it opens it, and remembers of what it writes. It does not
// compare sequence numbers, though that needed no memory: sequences begin at 1
// again when the coordination database was made anew, and a sink that took
// everything below its last number for a repeat would lose all of it without a
// word. An id names the version of a row, wherever it was counted.
//
// What is remembered is bounded (see [Options].Remember), as what a relay can
// repeat is bounded: one batch a term. An event that an operator has the
// observers see anew is written again once it is out of that memory. A file
// that was rotated away between a crash and the next start is out of it too.
//
// # Rotation
//
// Before each batch, and again after its sync, the sink looks whether the path
// still leads to the file. A program that renames it after that finds the batch in it.
// If it was renamed before, it may have been compressed and removed already, and
// the batch is written to its successor: both may hold it, each of them once.
//
// A file that became shorter may have lost lines that were acknowledged. The
// sink is halted ([sink.ErrHalted]) until the path leads to another file, or
// until it is opened anew.
//
// # Crashes
//
// A line that was torn by a crash is cut off when the file is opened; one that
// lacks nothing but its line break is completed. Lines of others are never
// touched, and a file that ends with one is not written to: it may be another's,
// by a path that was mistyped. The file is synced before its lines are believed, because a line that another
// process has left in memory may still be lost with the machine.
//
// # Other writers
//
// The sink holds an exclusive flock on the file itself, so that a second relay
// on the host cannot interleave, not even one that slept for hours and
// believes that it still leads.
package file
