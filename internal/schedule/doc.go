// Package schedule decides when a type of observers is polled, and by which
// node. Every node runs the same job for a type at the same ticks, which are
// multiples of the interval on the database's clock; the cluster takes the turn
// of a tick once.
//
// A node goes through a turn like this:
//
//	fire ──> wait for the rank: k × grace for the k-th node of the rotation
//	            │
//	            v
//	  ┌──────> look ──taken──────────────────────────────────> skip the turn
//	  │ pause   │  │
//	  └──held───┘  └─free──> lock ──> look again ──taken──┐
//	                                     │                │
//	                                     v                v
//	                        poll the observers ──────> release
//	                                     │                ^
//	                                     └─> take turn ───┘
//
// Before that it waits for the end of the time of day at which the type is not polled, or
// skips the turn if the next one comes first. The observers of the turn are those whose
// delay has passed since their last turn, and that are polled at this time of day
// ([Timing]). A node that has three others before it leaves the turn to them, if it has found
// within five seconds that another had one of the type, and has not found one free since.
//
// From the first look to the second, a turn is admitted: as many turns are as the
// node has connections to the database. The others wait in the order in which they
// came, or are skipped when their next tick is due.
//
// Rotation spreads the work and avoids contention for the lock. No promise depends on it;
// where the first three nodes are dead and nobody knows yet, a turn may be missed. That a
// turn is taken once depends on the lock and on the second look, under it; that a stale
// holder writes nothing depends on the fence. So nodes that disagree about which nodes
// live, or whose clocks differ, do no harm.
//
// Failures:
//   - A node dies: its rank is skipped after a grace, or at once when its death was
//     seen ([Liveness]). Its lease is taken from it then, which notifies the nodes
//     that wait for the lock; otherwise the lease ends with its TTL.
//   - An observer fails: the turn is taken all the same, and only this observer
//     backs off.
//   - A source cannot be reached from this node: the observer's part of the turn is
//     left to the next node, and this node ranks last for the type.
//   - More types are due than the node can serve: they wait to be admitted, on this
//     node and not in the database. Other nodes take the turns that they get to
//     first.
//   - The coordination database does not answer: all nodes wait, and go on when it
//     answers again.
package schedule
