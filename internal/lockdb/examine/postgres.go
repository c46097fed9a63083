package examine

import (
	"context"
	"errors"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

func (x *examiner) postgres() {
	x.bound = `SELECT pg_catalog.set_config('statement_timeout', '10s', true), pg_catalog.set_config('search_path', '` + sqldb.Pinned + `', true)`
	if hosts := x.db.Hosts(); x.db.TakesAnyServer() && len(hosts) > 1 {
		x.found.Server.AnyOf = hosts
	}
	x.parts = append([]part{
		{status.PartConnections, (*examiner).reach},
		{status.PartClock, (*examiner).clock},
		{status.PartServer, (*examiner).postgresServer},
		{status.PartSchema, (*examiner).schema},
		{status.PartTable, (*examiner).postgresTable},
		{status.PartForm, (*examiner).postgresVerdict},
		{status.PartHangers, (*examiner).postgresHangers},
		{status.PartRole, (*examiner).postgresRole},
		{status.PartPath, (*examiner).postgresPath},
	}, ourParts()...)
}

// reach connects as a node does, to a server that can be written. Where the only
// host is none, the doctor looks at that and says why.
func (x *examiner) reach(ctx context.Context) error {
	err := x.db.Main.PingContext(ctx)
	if errors.Is(err, sqldb.ErrReadOnly) && len(x.db.Hosts()) == 1 {
		var readable *sqldb.Inspection
		if readable, err = sqldb.Inspect(x.options.URL, true); err != nil {
			return err
		}
		closed := x.db.Close()
		x.db, x.sql = readable, newExamineSQL(readable.DB)
		err = errors.Join(closed, x.db.Main.PingContext(ctx))
	}
	x.found.Server.Pooling = x.db.Pooling()
	return err
}

func (x *examiner) postgresServer(ctx context.Context) error {
	s := &x.found.Server
	err := x.one(ctx, x.sql.SQL().Server, &s.Version, &s.Number, &s.Standby)
	if err != nil {
		return err
	}
	err = x.one(ctx, x.sql.SQL().Replication, &s.Standbys, &s.Unseen)
	if err != nil {
		return err
	}
	s.Settings = map[string]string{}
	return x.visit(ctx, x.sql.SQL().Settings,
		func(scan func(...any) error) error {
			var name, setting string
			err := scan(&name, &setting)
			s.Settings[name] = setting
			return err
		})
}

func (x *examiner) postgresTable(ctx context.Context) error {
	t := &x.found.Table
	err := x.visit(ctx, x.sql.SQL().Table,
		func(scan func(...any) error) error {
			var columns string
			err := scan(&t.Schema, &t.Unlogged, &t.RowSecurity, &columns)
			t.Columns = sqldb.SplitList(columns)
			return err
		})
	if err != nil {
		return err
	}
	return x.names(ctx, x.sql.SQL().Elsewhere, &t.Elsewhere, "int_lock")
}

// postgresVerdict asks what a node says of the table when it starts.
func (x *examiner) postgresVerdict(ctx context.Context) error {
	if x.found.Table.Schema == "" {
		return nil
	}
	err := x.db.Recognise(ctx)
	if errors.Is(err, sqldb.ErrMixedTable) {
		x.found.Table.Refused, err = err.Error(), nil
	}
	return err
}

// postgresHangers reads what the owner of INT_LOCK may have added.
func (x *examiner) postgresHangers(ctx context.Context) error {
	if err := x.names(ctx, x.sql.SQL().Triggers, &x.found.Table.Triggers); err != nil {
		return err
	}
	// A view is made by a rule.
	return x.names(ctx, x.sql.SQL().Rules, &x.found.Table.Rules)
}
