package doctor

import (
	"fmt"
	"slices"

	"github.com/observerd/observerd/internal/lockdb"
)

// ttls compares the TTLs of nodes, as far as they are known.
func ttls(x *input, f *findings) {
	why := "With 4 columns the TTL is in the reader: the node with the shorter one takes the lock of a holder that is alive and slow."
	if x.Table.Has(expiredAfter) {
		why = "Each row has its own expiry, so every node respects the other's; but a dead node is waited for longer or shorter, depending on which it was."
	}
	for _, a := range x.Acquired {
		l, ok := x.wanted(a.Key, a.Region)
		if !ok || a.TTL == l.TTL {
			continue
		}
		f.add(Warning, fmt.Sprintf("%s was last taken by node %s, %s ago, with a TTL of %s; this configuration says %s", l.Name, a.Node, words(x.At.Sub(a.At)), words(a.TTL), words(l.TTL)),
			why, "Give all nodes the same lock.ttl, unless it was changed since.")
	}
	x.springTTL(f)
	f.fine("nodes of observerd took their locks with the TTL of this configuration")
}

// springTTL says that the TTL of Java nodes is unknown where it matters.
func (x *input) springTTL(f *findings) {
	shared := slices.ContainsFunc(x.want.Locks, func(l Lock) bool { return l.KeyFormat == lockdb.KeySpring }) // With Java nodes.
	if x.Table.Has(expiredAfter) || len(x.foreign()) == 0 && !shared {
		return
	}
	f.add(Note, "the TTL of Java nodes cannot be seen: with 4 columns it is in the reader, not in the row",
		fmt.Sprintf("A Java node with a shorter TTL takes locks of living nodes. Ours renew every third of their TTL, so one below %s would take them between two renewals; Spring's default is 10s.", words(x.want.TTL/3)),
		fmt.Sprintf("Check their code: DefaultLockRepository.setTimeToLive(%d) on every Java node, the same as lock.ttl here.", x.want.TTL.Milliseconds()))
}
