package examine

import (
	"context"
	"os"
	"strings"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

func (x *examiner) sqlite() {
	x.finite = func(column string) string { return column }
	x.parts = append([]part{
		// First, because a file that is no database has no other part.
		{status.PartSchema, (*examiner).schema},
		{status.PartClock, (*examiner).clock},
		{status.PartSQLite, (*examiner).sqliteServer},
		{status.PartTable, (*examiner).sqliteTable},
	}, ourParts()...)
}

func (x *examiner) sqliteServer(ctx context.Context) error {
	s := &x.found.Server
	var journal string
	if err := x.one(ctx, `SELECT sqlite_version()`, &s.Version); err != nil {
		return err
	}
	if err := x.one(ctx, `PRAGMA journal_mode`, &journal); err != nil {
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

func (x *examiner) sqliteTable(ctx context.Context) error {
	t := &x.found.Table
	err := x.visit(ctx, `SELECT type FROM sqlite_master WHERE lower(name) = 'int_lock'`, func(scan func(...any) error) error {
		t.Schema = "main"
		return scan(&t.Kind)
	})
	if err != nil {
		return err
	}
	// SQLite enforces no length, so none is told.
	err = x.visit(ctx, `SELECT lower(name), lower(type), "notnull" = 0, coalesce(dflt_value, '') FROM pragma_table_info('int_lock')`,
		func(scan func(...any) error) error {
			var c status.Column
			err := scan(&c.Name, &c.Type, &c.Nullable, &c.Default)
			c.Type, _, _ = strings.Cut(c.Type, "(")
			t.Columns = append(t.Columns, c)
			return err
		})
	if err != nil {
		return err
	}
	return x.visit(ctx, `
		SELECT group_concat(lower(c.name))
		  FROM pragma_index_list('int_lock') i, pragma_index_info(i.name) c
		 WHERE i."unique" AND NOT i.partial
		 GROUP BY i.name
		 ORDER BY i.name`,
		func(scan func(...any) error) error {
			var columns string
			err := scan(&columns)
			t.Unique = append(t.Unique, sqldb.SplitList(columns))
			return err
		})
}
