package lockdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// failuresKept is how long the failures of a lock are remembered after the last one.
const failuresKept = 7 * 24 * time.Hour

// noteFailuresSQL adds failures: a list in JSON, $1, of the values of a row each. The rows
// are locked in one order, so that processes do not block each other.
const noteFailuresSQL = `
INSERT INTO obs_lock_failure AS f (lock_key, region, predicate, subject, name, failures, first_at, last_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BIGINT), {now}, {now}
  FROM {elements $1}
 WHERE TRUE
 ORDER BY 1, 2, 3
ON CONFLICT (lock_key, region, predicate) DO UPDATE
   SET failures = f.failures + excluded.failures, last_at = excluded.last_at`

// NoteFailures implements [lock.FailureLog].
func (l *Leases) NoteFailures(ctx context.Context, failures []lock.Failure) error {
	rows := make([][6]any, len(failures))
	for i, f := range failures {
		rows[i] = [6]any{rowKey(f.Key), f.Region, f.Predicate, f.Subject, f.Key, f.Count}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode %d failures: %w", len(rows), err)
	}
	_, err = l.db.Exec(ctx, "note failed acquisitions", noteFailuresSQL, string(list))
	return err
}
