package examine

import (
	"context"
	"os"

	"github.com/observerd/observerd/internal/status"
)

func (x *examiner) sqlite() {
	x.parts = append([]part{
		// First, because a file that is no database has no other part.
		{status.PartSchema, (*examiner).schema, false},
		{status.PartClock, (*examiner).clock, false},
		{status.PartSQLite, (*examiner).sqliteServer, false},
		{status.PartTable, (*examiner).sqliteTable, false},
	}, ourParts()...)
}

func (x *examiner) sqliteServer(ctx context.Context) error {
	s := &x.found.Server
	var journal string
	if err := x.one(ctx, x.sql.SQL().Server, &s.Version); err != nil {
		return err
	}
	if err := x.one(ctx, x.sql.SQL().Journal, &journal); err != nil {
		return err
	}
	s.Settings = map[string]string{"journal_mode": journal}
	file, err := os.Stat(x.db.Path())
	if err != nil {
		return err
	}
	s.FileMode = file.Mode().Perm()
	return nil
}

// sqliteTable looks for the table that our migration makes.
func (x *examiner) sqliteTable(ctx context.Context) error {
	t := &x.found.Table
	err := x.names(ctx, x.sql.SQL().Table, &t.Columns)
	if len(t.Columns) > 0 {
		t.Schema = "main"
	}
	return err
}
