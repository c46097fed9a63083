package lockdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/migrations"
)

func examineSQLite(o ExamineOptions) (*examiner, error) {
	path := strings.TrimPrefix(o.URL, "sqlite:")
	// Without the settings of a node: they would change the file's journal.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("coordination database: %w", err)
	}
	pool.SetMaxOpenConns(2)
	x := &examiner{
		options: o, pool: pool, d: sqliteDialect(), found: &status.Examination{Backend: "sqlite"},
		finite: func(column string) string { return column },
		kind:   byFlock, others: newFilePresence(nil, path).others,
	}
	x.parts = append([]part{
		// First, because a file that is no database has no other part.
		{status.PartSchema, (*examiner).sqliteSchema},
		{status.PartClock, (*examiner).clock},
		{status.PartSQLite, (*examiner).sqliteServer},
		{status.PartTable, (*examiner).sqliteTable},
	}, ourParts()...)
	return x, nil
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
	file, err := os.Stat(strings.TrimPrefix(x.options.URL, "sqlite:"))
	if err != nil {
		return err
	}
	s.FileMode = file.Mode().Perm()
	return nil
}

func (x *examiner) sqliteSchema(ctx context.Context) (err error) {
	v := &x.found.Schema
	v.Current, v.Target, err = schemaState(ctx, goose.DialectSQLite3, x.pool, migrations.SQLite(),
		sqliteMade(ctx, x.pool))
	return noDatabase(strings.TrimPrefix(x.options.URL, "sqlite:"), err)
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
			t.Unique = append(t.Unique, splitList(columns))
			return err
		})
}
