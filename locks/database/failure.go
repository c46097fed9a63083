package database

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
)

// NoteFailures implements [lock.FailureLog].
func (p *Provider) NoteFailures(ctx context.Context, failures []lock.Failure) error {
	rows := make([][6]any, len(failures))
	for i, f := range failures {
		rows[i] = [6]any{rowKey(f.Key), f.Region, f.Predicate, f.Subject, f.Key, f.Count}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode %d failures: %w", len(rows), err)
	}
	_, err = p.db.Exec(ctx, "note failed acquisitions", p.sql.SQL().NoteFailures, string(list))
	return err
}
