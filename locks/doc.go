// Package locks gives programs the lock system that guards observerd's polls: leases
// with a fencing token on things that a team names.
//
// A lock is described by what it protects (a subject and its resources), what is done
// (a predicate) and how (a mode). Its lease is renewed in the background for as long as
// its holder lives, and ends when the holder releases it, dies, or is cut off:
//
//	provider, err := database.Open(ctx, "postgres://…", database.Options{})
//	…
//	m, err := locks.Open(ctx, locks.Options{Provider: provider})
//	…
//	err = m.Do(ctx, locks.Descriptor{
//		Subject: "page", Predicate: "extracting",
//		Resources: []string{"fs-1", "doc-2", "3"}, TTL: 2 * time.Minute,
//	}, func(ctx context.Context, l *locks.Lease) error {
//		return extract(ctx) // ctx ends when the lease cannot be trusted any more
//	})
//
// No lease can promise that two holders never overlap: a process may sleep past its
// TTL. What must not happen twice is guarded where it is written, by [Lease.Guard] in a
// transaction of the coordination database, or by [Lease.Fence] in any other system.
package locks
