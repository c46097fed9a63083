// Package takeover measures how long the work of a node that has died, sleeps,
// is cut off or leaves stands still: from the moment at which it is struck in
// the middle of a poll to the first commit by which another node goes on with
// that turn. Nodes are real processes on a real PostgreSQL, which tells when the
// commit took effect.
package takeover
