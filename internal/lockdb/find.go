package lockdb

import (
	"context"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// findSQL returns the holders of locks in region $1, of node $2, after the row $3 and the
// term $4, at most $5: those of the row $6, that are $7 seconds old, that are over if $8 says
// so, and whose descriptors match all patterns of the list $9. A planner that expects few
// locks of one condition, and those of a join, or has an index for a region, reads all and
// sorts them: COALESCE keeps it from that, so that it goes by the key and ends with the page.
const findSQL = `
SELECT held.*, (SELECT count(*) FROM obs_wait w WHERE w.lock_key = held.lock_key AND w.region = $1 AND ` + waitsSQL + `), {now}
  FROM (
    SELECT * FROM (
    SELECT o.lock_key, o.term, 'exclusive' AS mode, o.fence, o.name, o.node, o.descriptor, o.metadata, o.ttl_ms, o.acquired_at,
           (SELECT CAST(l.created_date AS TEXT) FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) AS touched
      FROM obs_lock o
     WHERE o.lock_key >= $3 AND (o.lock_key > $3 OR o.term > $4)
       AND (o.lock_key = $6 OR $6 = '')
       AND COALESCE(o.region = $1 AND o.group_term <> o.term AND ($2 = '' OR o.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR o.acquired_at <= {ago CAST($7 AS DOUBLE PRECISION)})
                AND NOT EXISTS (SELECT 1 FROM {numbered $9} p WHERE o.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND o.term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region)
                AND (NOT $8 OR (SELECT l.created_date FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) <= {utcago o.ttl_ms / 1000.0}), FALSE)
     ORDER BY o.lock_key, o.term LIMIT $5) alone
    UNION ALL
    SELECT * FROM (
    SELECT h.lock_key, h.term, h.mode, h.fence, h.name, h.node, h.descriptor, h.metadata, h.ttl_ms, h.acquired_at, {mark h.touched_at}
      FROM obs_hold h
     WHERE h.lock_key >= $3 AND (h.lock_key > $3 OR h.term > $4)
       AND (h.lock_key = $6 OR $6 = '')
       AND COALESCE(h.region = $1 AND ($2 = '' OR h.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR h.acquired_at <= {ago CAST($7 AS DOUBLE PRECISION)})
                AND NOT EXISTS (SELECT 1 FROM {numbered $9} p WHERE h.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region)
                AND (NOT $8 OR h.touched_at <= {ago h.ttl_ms / 1000.0}), FALSE)
     ORDER BY h.lock_key, h.term LIMIT $5) shared
  ) held
 ORDER BY held.lock_key, held.term
 LIMIT $5`

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// findArgs returns the arguments of a search.
func (l *Leases) findArgs(q lock.Query) ([]any, error) {
	patterns := make([]string, len(q.Parts))
	for i, part := range q.Parts {
		patterns[i] = "%:" + likeEscaper.Replace(part) + ":%"
	}
	parts, err := l.db.List(patterns)
	row := ""
	if q.Key != "" {
		row = rowKey(q.Key)
	}
	return []any{q.Region, q.Node, q.After.Row, q.After.Term, q.Limit, row, q.OlderThan.Seconds(), q.Expired, parts}, err
}

// Find implements [lock.Finder].
func (l *Leases) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	args, err := l.findArgs(q)
	if err != nil {
		return nil, err
	}
	var found []lock.Held
	err = l.db.Query(ctx, "find locks", findSQL, func(scan func(...any) error) error {
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
