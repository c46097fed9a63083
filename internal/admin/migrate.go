package admin

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// SchemaState compares the schema of the coordination database with that of this
// binary.
type SchemaState string

// The states of a schema.
const (
	SchemaCurrent SchemaState = "up to date"
	SchemaPending SchemaState = "pending"
	SchemaNewer   SchemaState = "newer than this binary"
	SchemaAbsent  SchemaState = "absent"
)

// Schema is the version of the coordination database's schema.
type Schema struct {
	State SchemaState `json:"state"`
	// Current is the database's version, 0 before the first migration; Target
	// is the binary's, 0 when the database does not exist.
	Current int64 `json:"current"`
	Target  int64 `json:"target"`
}

// Err is why this binary cannot work with the schema even after a migration;
// nil when it can.
func (s Schema) Err() error {
	if s.State == SchemaNewer {
		return sqldb.ErrSchemaNewer
	}
	return nil
}

// Schema reads the state of the schema and changes nothing.
func (op *Operator) Schema(ctx context.Context) (Schema, error) {
	if op.db == nil {
		return Schema{State: SchemaAbsent}, nil
	}
	current, target, err := op.db.SQL().SchemaVersion(ctx)
	if err != nil {
		return Schema{}, err
	}
	s := Schema{State: SchemaCurrent, Current: current, Target: target}
	switch {
	case current > target:
		s.State = SchemaNewer
	case current < target:
		s.State = SchemaPending
	}
	return s, nil
}

// Migrate brings the schema up to date and returns its state before and after.
// Nodes that run need not be stopped for it.
func (op *Operator) Migrate(ctx context.Context, by By) (before, after Schema, err error) {
	if before, err = op.Schema(ctx); err != nil {
		return before, before, err
	}
	applied, err := op.db.SQL().MigrateBy(ctx)
	if n := len(applied); n > 0 {
		act := lockdb.Did(by, "migrate", "schema", fmt.Sprintf("from version %d to %d", before.Current, applied[n-1]))
		if err := op.db.Operations().Note(ctx, act); err != nil {
			op.log.Warn("The migration is not in the audit table", "err", err)
		}
	}
	if err != nil {
		return before, before, err
	}
	after, err = op.Schema(ctx)
	return before, after, err
}

// SQLiteVersion is the version of the SQLite that is built in.
const SQLiteVersion = sqldb.SQLiteVersion
