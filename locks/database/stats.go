package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Stats are figures of the general locks of a region, of all processes.
type Stats struct {
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

// Stats returns the figures of the general locks of a region, with as many of the
// locks that acquisitions failed for.
func (p *Provider) Stats(ctx context.Context, region string, failed int) (Stats, error) {
	var s Stats
	var err error
	if s.At, err = p.db.Now(ctx); err != nil {
		return s, err
	}
	s.Kinds, err = sqldb.All(ctx, p.db, "read the figures of the locks", p.sql.SQL().KindStats, func(scan sqldb.Scan, k *KindStats) error {
		var ttl, oldest int64
		err := scan(&k.Subject, &k.Predicate, &k.Active, &ttl, &oldest, &k.OldestNode, &k.Waiting, &k.Failures)
		k.AverageTTL, k.Oldest = time.Duration(ttl)*time.Millisecond, time.Duration(oldest)*time.Millisecond
		return err
	}, region)
	if err != nil {
		return s, err
	}
	s.Failed, err = sqldb.All(ctx, p.db, "read which locks could not be acquired", p.sql.SQL().FailedLocks, func(scan sqldb.Scan, f *FailedLock) error {
		return scan(&f.Name, &f.Failures, sqldb.ScanTime(&f.Last))
	}, region, failed)
	return s, err
}

// NoteFailures implements [lock.FailureLog].
func (p *Provider) NoteFailures(ctx context.Context, failures []lock.Failure) error {
	rows := fn.Each(failures, func(f lock.Failure) [6]any {
		return [6]any{lockdb.RowKey(f.Key), f.Region, f.Predicate, f.Subject, f.Key, f.Count}
	})
	list, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode %d failures: %w", len(rows), err)
	}
	_, err = p.db.Exec(ctx, "note failed acquisitions", p.sql.SQL().NoteFailures, string(list))
	return err
}
