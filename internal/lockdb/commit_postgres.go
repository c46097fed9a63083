package lockdb

import (
	"context"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// commitArgs are the parameters of Commit: the lease $1, the cursor $5, the rows $20,
// the poison rows $26 and the events $31.
func commitArgs(g lock.Grant, ch *observer.Chunk) []any {
	return slices.Concat(
		[]any{rowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()},
		advanceArgs(ch),
		observedArgs(slices.Concat(ch.New, ch.Changed)), []any{len(ch.New)},
		deadArgs(ch.Dead), []any{ch.Refused},
		eventArgs(ch.Events),
	)
}

// copyFrom is the number of new rows from which COPY in a transaction is
// faster than one statement with arrays. That needs the events in memory several
// times over, so from copyBytes on they are copied row by row as well.
const (
	copyFrom  = 2000
	copyBytes = 1 << 20
)

func (e *postgresEngine) commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	how := e.commitStatement
	if ch.Sweep != nil || ch.Generation != nil || len(ch.New) >= copyFrom || isLarge(ch) {
		how = e.commitTransaction
	}
	return e.unblocked(ctx, func() error { return how(ctx, g, ch) })
}

func isLarge(ch *observer.Chunk) bool {
	bytes := 0
	for i := range ch.Events {
		bytes += len(ch.Events[i].Data)
	}
	return bytes >= copyBytes
}

func (e *postgresEngine) commitStatement(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	var leases, cursors int
	if err := e.db.Main.QueryRowContext(ctx, e.sql.SQL().Commit.Commit, commitArgs(g, ch)...).Scan(&leases, &cursors); err != nil {
		return err
	}
	return verdict(leases == 1, cursors == 1)
}

// verdict names what refused a commit.
func verdict(leased, current bool) error {
	switch {
	case !leased:
		return lock.ErrFenced
	case !current:
		return observer.ErrConflict
	}
	return nil
}

func observedArgs(rows []observer.Observed) []any {
	n := len(rows)
	keys, hashes, versions := make([]string, n), make([][]byte, n), make([]int32, n)
	numbers, gone := make([]int64, n), make([]bool, n)
	for i, o := range rows {
		keys[i], hashes[i], versions[i], numbers[i], gone[i] = o.Key, o.Hash, int32(o.Version), o.Number, o.Gone //nolint:gosec // A row does not have two billion versions.
	}
	return []any{keys, hashes, versions, numbers, gone}
}

// deadArgs leaves out repeats: rows without a readable key look alike, and an
// upsert may meet a row once only.
func deadArgs(dead []observer.Dead) []any {
	keys, digests, reasons, raws := []string{}, [][]byte{}, []string{}, []string{}
	seen := make(map[string]bool, len(dead))
	for _, d := range dead {
		digest := deadDigest(d)
		if seen[string(digest)] {
			continue
		}
		seen[string(digest)] = true
		keys, digests = append(keys, d.Key), append(digests, digest)
		reasons, raws = append(reasons, d.Reason), append(raws, string(d.Raw))
	}
	return []any{keys, digests, reasons, raws}
}

func eventArgs(all []events.Event) []any {
	n := len(all)
	ids, types, subjects, versions := make([][16]byte, n), make([]string, n), make([]string, n), make([]int32, n)
	changes, times, data, snapshots := make([]string, n), make([]time.Time, n), make([]string, n), make([]bool, n)
	for i := range all {
		ev := &all[i]
		ids[i], types[i], subjects[i], versions[i] = ev.ID, ev.Type, ev.Subject, int32(ev.Version) //nolint:gosec // As above.
		changes[i], times[i], data[i], snapshots[i] = string(ev.Change), ev.Time, string(ev.Data), ev.Snapshot
	}
	return []any{ids, types, subjects, versions, changes, times, data, snapshots}
}
