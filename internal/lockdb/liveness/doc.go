// Package liveness finds out which process of a cluster is dead, so that its leases
// are not waited for.
//
// Each process shows that it lives by something that its death takes away at once: a
// session with an advisory lock on PostgreSQL, a locked file on SQLite. The others look
// four times a second; on PostgreSQL three of them do, and the others less often, the more
// there are. A process that was absent in all looks of a second, without a sign of life, is
// judged dead, and its leases are deleted. Safety does not rest on it: a process that was
// judged wrongly is fenced like every stale holder.
package liveness
