// Package torture runs a whole cluster under faults and keeps what happened.
//
// A run has two PostgreSQL servers of its own, one for coordination, with a
// standby that shows an earlier time, and one as the source; real processes, each
// behind proxies of its own; programs that hold general locks; and writers that do what
// writers of foreign databases do. A plan that follows from a seed says which fault
// strikes whom and when. Then all is healed, the writers stop, and everything has to
// drain within a bound. What the source committed, what programs wrote under locks, what the
// triggers in the coordination database saw, what the source's log says of the
// polls, what the sink has, and what was done to the nodes become one
// [history.Run], which the package check judges.
//
// What a run proves rests on faults that really struck: each says whether it
// did.
package torture
