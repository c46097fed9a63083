// Package access stands between a node and its sources: a breaker for each database
// that cannot be reached, a gate for each account that was refused, a limit of polls
// that begin at a time, and the metrics of all that. [Opener] opens a [Source], which is
// used as the database behind it.
package access
