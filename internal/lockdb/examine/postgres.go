package examine

import (
	"context"
	"errors"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/status"
)

func (x *examiner) postgres() {
	x.bound = `SELECT pg_catalog.set_config('statement_timeout', '10s', true), pg_catalog.set_config('lock_timeout', '5s', true), pg_catalog.set_config('search_path', '` + sqldb.Pinned + `', true)`
	if hosts := x.db.Hosts(); x.db.TakesAnyServer() && len(hosts) > 1 {
		x.found.Server.AnyOf = hosts
	}
	x.parts = append([]part{
		{status.PartConnections, (*examiner).reach, false},
		{status.PartClock, (*examiner).clock, false},
		{status.PartServer, (*examiner).postgresServer, false},
		{status.PartSchema, (*examiner).schema, false},
		{status.PartTable, (*examiner).postgresTable, false},
		{status.PartForm, (*examiner).postgresVerdict, false},
		{status.PartHangers, (*examiner).postgresHangers, false},
		{status.PartRole, (*examiner).postgresRole, false},
		{status.PartPath, (*examiner).postgresPath, false},
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

// nodeRights are what a node and an operator need. A test of app works
// with a role that has no others.
var nodeRights = []struct{ table, rights string }{
	{"int_lock", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_lock", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_hold", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_wait", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_lock_failure", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_node", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_schedule", "SELECT,INSERT,UPDATE"},
	{"obs_cursor", "SELECT,INSERT,UPDATE"},
	{"obs_observed", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_event", "SELECT,INSERT,DELETE"},
	{"obs_sink_offset", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_parked", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_dead", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_poll", "SELECT,INSERT,DELETE"},
	{"obs_audit", "SELECT,INSERT,DELETE"},
	{"obs_sweep", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_account", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_generation", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_migration", "SELECT"},
	{"obs_log", "SELECT"},
	{"obs_active_locks", "SELECT"},
	{"obs_lock_stats", "SELECT"},
}

func (x *examiner) postgresRole(ctx context.Context) error {
	r := &x.found.Role
	if err := x.excess(ctx); err != nil {
		return err
	}
	for _, n := range nodeRights {
		// A table that is not there is the schema's business.
		err := x.names(ctx, x.sql.SQL().Rights, &r.Missing, n.table, n.rights, x.db.Table(n.table).Sanitize())
		if err != nil {
			return err
		}
	}
	err := x.names(ctx, x.sql.SQL().Sequence, &r.Missing, "obs_fence", x.db.Table("obs_fence").Sanitize(), "obs_int_lock", x.db.Table("obs_int_lock").Sanitize()+"()")
	if err != nil || x.found.Schema.Current >= x.found.Schema.Target {
		return err
	}
	return x.names(ctx, x.sql.SQL().Create, &r.ToMigrate, x.db.Schema(), x.db.Table(sqldb.SchemaTable).Sanitize())
}

// postgresPath looks who can put something into the schemas of the search_path.
func (x *examiner) postgresPath(ctx context.Context) error {
	return collect(ctx, x, x.sql.SQL().Path, &x.found.Path, func(scan sqldb.Scan, s *pgsession.Schema) (err error) {
		var name, owner, creators, strangers []byte
		if err := scan(&name, &owner, &creators, &strangers); err != nil {
			return err
		}
		*s, err = pgsession.Read(name, owner, creators, strangers)
		return err
	}, x.db.SearchPath())
}

func (x *examiner) excess(ctx context.Context) error {
	return x.visit(ctx, x.sql.SQL().Excess,
		func(scan func(...any) error) error {
			var right string
			var has bool
			err := scan(&x.found.Role.Name, &right, &has)
			if has {
				x.found.Role.Excess = append(x.found.Role.Excess, right)
			}
			return err
		})
}
