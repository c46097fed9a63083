// Package schedule decides when a type of observers is polled, and by which
// node. Every node runs the same job for a type at the same ticks, which
// are multiples of the interval on the database's clock; the turn of an
// tick is taken once by the whole cluster.
//
// A node goes through a turn like this:
//
//	fire ──> stand in line: k × grace for the k-th node of the rotation
//	            │
//	            v
//	  ┌──────> look ──taken──────────────────────────────────> stand back
//	  │ pause   │  │
//	  └──held───┘  └─free──> lock ──> look again ──taken──┐
//	                                     │                │
//	                                     v                v
//	                        poll the observers ──────> release
//	                                     │                ^
//	                                     └─> take turn ───┘
//
// From the look to the second one, a turn is one of as many as the node has
// connections to the database; the others are admitted in the order in which
// they came, or stand back when their next tick is due.
//
// Rotation spreads the work and keeps nodes from meeting at the lock; it
// promises nothing. That a turn is taken once rests on the lock and on reading
// the turn again under it; that a stale holder writes nothing rests on the
// fence. So nodes that disagree about who is alive, or whose clocks differ, do
// no harm.
//
// What fails:
//   - A node dies: its place in line is skipped after a grace, or at once when
//     its death was seen ([Liveness]). Its lease is taken from it then, which
//     wakes those that wait for the lock; otherwise it ends with the TTL.
//   - An observer fails: the turn is taken all the same, and it alone backs
//     off.
//   - A source cannot be reached from here: that observer's part of the turn
//     is left to the next node, and this node ranks last for the type.
//   - More types are due than the node can serve: they wait to be admitted, on
//     this node and not in the database. Other nodes take the turns that they get
//     to first.
//   - The coordination database is away: everyone waits, and goes on when it
//     is back.
package schedule
