package examine

import (
	"context"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/pgsession"
)

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
	{"obs_dead", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_poll", "SELECT,INSERT,DELETE"},
	{"obs_audit", "SELECT,INSERT,DELETE"},
	{"obs_sweep", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_account", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_generation", "SELECT,INSERT,UPDATE,DELETE"},
	{"obs_migration", "SELECT"},
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
	return x.names(ctx, x.sql.SQL().Create, &r.ToMigrate, x.db.Schema())
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
