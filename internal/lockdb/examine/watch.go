package examine

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wait"
)

// content is all of a row that its writers write.
type content struct {
	liveness.LockID
	term             string
	created, expires time.Time
}

// watcher looks at the rows of INT_LOCK and remembers what it has seen.
type watcher struct {
	*examiner
	seen map[content]status.Sighting
	// before are the locks that had a row at the last look.
	before map[liveness.LockID]bool
	looks  int
	// first and began are when the first and the last look began, gap how long the
	// latter is ago.
	first, began time.Time
	gap          time.Duration
}

// watch looks at INT_LOCK again and again. What appears between two looks was
// written then, by the clock of its writer, and so betrays that clock.
func (x *examiner) watch(ctx context.Context) error {
	if !readable(x.found.Table) {
		return nil
	}
	x.found.Every = x.options.Every
	w := &watcher{examiner: x, seen: map[content]status.Sighting{}}
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		x.found.Watched = w.began.Sub(w.first) // The last look is none of it, however slow.
		if x.found.Watched >= x.options.Watch {
			break
		}
		if !wait.For(ctx, x.options.Every) {
			return context.Cause(ctx)
		}
	}
	x.found.Sightings = slices.SortedFunc(maps.Values(w.seen), func(a, b status.Sighting) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Key, b.Key), a.First.Compare(b.First), cmp.Compare(a.Term, b.Term))
	})
	return nil
}

// readable reports whether the table has the columns that every generation has.
func readable(table status.LockTable) bool {
	columns := []string{"lock_key", "region", "client_id", "created_date"}
	return !slices.ContainsFunc(columns, func(name string) bool { return !table.Has(name) })
}

// look reads all rows once.
func (w *watcher) look(ctx context.Context) error {
	present, began := map[liveness.LockID]bool{}, time.Now()
	text := w.sql.SQL().BareLocks
	if w.migrated() {
		text = w.sql.SQL().Locks
	}
	err := w.visit(ctx, text, func(scan func(...any) error) error {
		var s status.Sighting
		var term, name, node sql.NullString
		var ttl sql.NullInt64
		err := scan(&s.Key, &s.Region, &term, sqldb.ScanTime(&s.Created), sqldb.ScanTime(&s.Expires), sqldb.ScanTime(&s.First), &name, &node, &ttl)
		if err != nil {
			return err
		}
		s.Key, s.Term, s.Last = sqldb.Unpadded(s.Key), sqldb.Unpadded(term.String), s.First
		s.Ours, s.Name, s.Node, s.TTL = ttl.Valid, name.String, node.String, time.Duration(ttl.Int64)*time.Millisecond
		present[liveness.LockID{Key: s.Key, Region: s.Region}] = true
		w.gap = time.Since(w.began)
		w.note(s)
		return nil
	})
	if w.looks == 0 {
		w.first = began
	}
	w.before, w.began = present, began
	w.looks++
	return err
}

// note adds a sighting of a row.
func (w *watcher) note(s status.Sighting) {
	lock := liveness.LockID{Key: s.Key, Region: s.Region}
	c := content{lock, s.Term, s.Created, s.Expires}
	if known, ok := w.seen[c]; ok {
		known.Last = s.Last
		w.seen[c] = known
		return
	}
	s.Written = w.looks > 0
	s.Inserted = s.Written && !w.before[lock]
	if s.Written {
		s.Gap = w.gap
	}
	w.seen[c] = s
}
