package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// LockStats are figures of the general locks of a region, of all processes.
type LockStats struct {
	// Kinds are sorted by subject and predicate.
	Kinds []KindStats
	// Failed are the locks that most acquisitions failed for, the worst first.
	Failed []FailedLock
	// At is the database's time.
	At time.Time
}

// KindStats are figures of the locks of a subject and predicate.
type KindStats struct {
	Subject, Predicate string
	// Active is how many hold such locks, AverageTTL the mean of their TTLs, and Oldest
	// how long the one of them has held it, on OldestNode, that has for longest.
	Active             int64
	AverageTTL, Oldest time.Duration
	OldestNode         string
	// Waiting is how many wait for a lock that was taken last with that predicate.
	Waiting int64
	// Failures is how many acquisitions with that predicate are known that failed
	// because another had the lock.
	Failures int64
}

// FailedLock is a lock that acquisitions failed for.
type FailedLock struct {
	// Name is its whole key.
	Name     string
	Failures int64
	Last     time.Time
}

const kindStatsSQL = `
SELECT s.subject, s.predicate, s.active, s.ttl_ms, s.oldest_ms, COALESCE(o.node, ''), s.waiting, s.failures
  FROM (
    SELECT subject, predicate, CAST(sum(active) AS BIGINT) AS active,
           CAST(COALESCE(sum(active * average_ttl_ms) / NULLIF(sum(active), 0), 0) AS BIGINT) AS ttl_ms, COALESCE(max(oldest_ms), 0) AS oldest_ms,
           CAST(sum(waiting) AS BIGINT) AS waiting, CAST(sum(failures) AS BIGINT) AS failures
      FROM obs_lock_stats
     WHERE region = $1
     GROUP BY subject, predicate
  ) s
  LEFT JOIN (
    SELECT subject, predicate, node, row_number() OVER (PARTITION BY subject, predicate ORDER BY acquired_at, fence) AS n
      FROM obs_active_locks
     WHERE region = $1
  ) o ON o.subject = s.subject AND o.predicate = s.predicate AND o.n = 1
 ORDER BY s.subject, s.predicate`

const failedLocksSQL = `
SELECT name, CAST(sum(failures) AS BIGINT) AS failures, max(last_at)
  FROM obs_lock_failure
 WHERE region = $1
 GROUP BY name
 ORDER BY failures DESC, name
 LIMIT $2`

// LockStats returns the figures of the general locks of a region, with as many of the
// locks that acquisitions failed for.
func (db *DB) LockStats(ctx context.Context, region string, failed int) (LockStats, error) {
	var s LockStats
	var err error
	if s.At, err = db.Now(ctx); err != nil {
		return s, err
	}
	err = db.db.Query(ctx, "read the figures of the locks", kindStatsSQL, func(scan func(...any) error) error {
		var k KindStats
		var ttl, oldest int64
		err := scan(&k.Subject, &k.Predicate, &k.Active, &ttl, &oldest, &k.OldestNode, &k.Waiting, &k.Failures)
		k.AverageTTL, k.Oldest = time.Duration(ttl)*time.Millisecond, time.Duration(oldest)*time.Millisecond
		s.Kinds = append(s.Kinds, k)
		return err
	}, region)
	if err != nil {
		return s, err
	}
	err = db.db.Query(ctx, "read which locks were not to be had", failedLocksSQL, func(scan func(...any) error) error {
		var f FailedLock
		err := scan(&f.Name, &f.Failures, sqldb.ScanTime(&f.Last))
		s.Failed = append(s.Failed, f)
		return err
	}, region, failed)
	return s, err
}
