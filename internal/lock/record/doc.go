// Package record keeps locks in a store of records that compares and swaps by version: a
// Kubernetes Lease, a key of etcd or Consul, an object. The algorithm is that of client-go's
// leader election (k8s.io/client-go/tools/leaderelection) and of the DynamoDB lock client.
//
// A lock is one record, which names the term that has it. A process takes a lock by a write in
// place of the version that it has read, if the record is free or its lease is over, and the
// holder renews it by another write. No clock is compared with another one: a lease is over for
// a process when it has seen the record unchanged for the TTL in it, by its own monotonic clock.
// Whoever renews in time is safe, since the write of the next holder names a version that is
// gone then.
//
// A write may have been carried out although its answer is missing, or may be carried out
// later. Each has a mark of its own, so it is read back, and sent again with the same version
// if it is not there: one of the two finds another version. Where a release deletes the record,
// the second may find none again and bring its term back, with a greater fence: such a term is
// not renewed. What stays unknown is given back, and lasts for a TTL at worst.
//
// The fence grows with each acquisition of a key. Where the store numbers all its writes, it is
// the number of the acquisition's, and a release deletes the record. Elsewhere it is counted in
// the record, which a release leaves without a term and nothing deletes: the count would begin
// anew, and an old holder would have a greater fence than the next one.
//
// The limits are those of observation. A process that has never seen the record of a dead
// holder waits for a whole TTL, counted from its first look, before it takes the lock; one that
// is started anew more often than that never takes it. A monotonic clock may stand still while
// its machine sleeps, so a holder can trust a lease that others have seen expire: the fence is
// for that. Clocks that run at different speeds are allowed for by the [lock.Keeper]'s margin
// alone. A store that is restored from a copy can give a lock, and a fence, twice.
package record
