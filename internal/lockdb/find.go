package lockdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// findSQL returns the holders of locks in region $1, of node $2, after the row $3 and the
// term $4, at most $5. {parts} is the condition on the descriptor. A planner that expects
// few locks of one condition, and those of a join, reads all and sorts them: COALESCE keeps
// it from estimating, so that it goes by the key and ends with the page.
const findSQL = `
SELECT held.*, (SELECT count(*) FROM obs_wait w WHERE w.lock_key = held.lock_key AND w.region = $1 AND ` + waitsSQL + `), {now}
  FROM (
    SELECT * FROM (
    SELECT o.lock_key, o.term, 'exclusive' AS mode, o.fence, o.name, o.node, o.descriptor, o.metadata, o.ttl_ms, o.acquired_at,
           (SELECT CAST(l.created_date AS TEXT) FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) AS touched
      FROM obs_lock o
     WHERE o.region = $1 AND o.group_term <> o.term
       AND o.lock_key >= $3 AND (o.lock_key > $3 OR o.term > $4)
       AND COALESCE(($2 = '' OR o.node = $2) AND {parts o}o.term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region), FALSE)
     ORDER BY o.lock_key, o.term LIMIT $5) alone
    UNION ALL
    SELECT * FROM (
    SELECT h.lock_key, h.term, h.mode, h.fence, h.name, h.node, h.descriptor, h.metadata, h.ttl_ms, h.acquired_at, {mark h.touched_at}
      FROM obs_hold h
     WHERE h.region = $1
       AND h.lock_key >= $3 AND (h.lock_key > $3 OR h.term > $4)
       AND COALESCE(($2 = '' OR h.node = $2) AND {parts h}h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region), FALSE)
     ORDER BY h.lock_key, h.term LIMIT $5) shared
  ) held
 ORDER BY held.lock_key, held.term
 LIMIT $5`

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// findText returns the statement of a search, and its arguments.
func findText(q lock.Query) (string, []any) {
	args := []any{q.Region, q.Node, q.After.Row, q.After.Term, q.Limit}
	var parts strings.Builder
	for _, part := range q.Parts {
		args = append(args, "%:"+likeEscaper.Replace(part)+":%")
		fmt.Fprintf(&parts, `{row}.descriptor || ':' LIKE $%d ESCAPE '\' AND `, len(args))
	}
	of := func(row string) string { return strings.ReplaceAll(parts.String(), "{row}", row) }
	return strings.NewReplacer("{parts o}", of("o"), "{parts h}", of("h")).Replace(findSQL), args
}

// Find implements [lock.Finder].
func (l *Leases) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	text, args := findText(q)
	var found []lock.Held
	err := l.db.Query(ctx, "find locks", text, func(scan func(...any) error) error {
		var h lock.Held
		var mode string
		var ttl int64
		var acquired, touched, now time.Time
		err := scan(&h.Row, &h.Term, &mode, &h.Fence, &h.Name, &h.Node, &h.Descriptor, &h.Metadata, &ttl,
			sqldb.ScanTime(&acquired), &h.Mark, &h.Waiting, sqldb.ScanTime(&now))
		if err == nil {
			err = sqldb.ScanTime(&touched).Scan(h.Mark)
		}
		h.Row, h.Term = sqldb.Unpadded(h.Row), sqldb.Unpadded(h.Term)
		h.Key, h.Region, h.Mode, h.TTL = h.Name, q.Region, lock.Mode(mode), time.Duration(ttl)*time.Millisecond
		h.Age, h.Left = now.Sub(acquired), h.TTL-now.Sub(touched)
		found = append(found, h)
		return err
	}, args...)
	return found, err
}
