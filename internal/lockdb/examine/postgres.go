package examine

import (
	"context"
	"errors"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

func (x *examiner) postgres() {
	x.bound = `SELECT pg_catalog.set_config('statement_timeout', '10s', true), pg_catalog.set_config('search_path', '` + sqldb.Pinned + `', true)`
	// No time.Time is infinite.
	x.finite = func(column string) string {
		return `CASE WHEN ` + column + ` IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', ` + column + `)) END`
	}
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
		x.db = readable
		err = errors.Join(closed, x.db.Main.PingContext(ctx))
	}
	x.found.Server.Pooling = x.db.Pooling()
	return err
}

func (x *examiner) postgresServer(ctx context.Context) error {
	s := &x.found.Server
	err := x.one(ctx, `
		SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery()`,
		&s.Version, &s.Number, &s.Standby)
	if err != nil {
		return err
	}
	// Subscribers and the like stream through logical slots; a backup does not stream.
	err = x.one(ctx, `
		SELECT count(*) FILTER (WHERE r.state IN ('streaming', 'catchup')), count(*) FILTER (WHERE r.state IS NULL)
		  FROM pg_stat_replication r
		 WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`,
		&s.Standbys, &s.Unseen)
	if err != nil {
		return err
	}
	s.Settings = map[string]string{}
	return x.visit(ctx, `
		SELECT name, CASE WHEN name LIKE '%timeout' THEN reset_val ELSE setting END
		  FROM pg_settings
		 WHERE name IN ('fsync', 'synchronous_commit', 'synchronous_standby_names', 'full_page_writes', 'default_transaction_read_only', 'default_transaction_isolation',
		                'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')`,
		func(scan func(...any) error) error {
			var name, setting string
			err := scan(&name, &setting)
			s.Settings[name] = setting
			return err
		})
}

func (x *examiner) postgresTable(ctx context.Context) error {
	t := &x.found.Table
	err := x.visit(ctx, `
		SELECT n.nspname::text, c.relpersistence = 'u', c.relrowsecurity,
		       array_to_string(ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ',')
		  FROM pg_class c
		  JOIN pg_namespace n ON n.oid = c.relnamespace
		 WHERE c.oid = to_regclass('int_lock')`,
		func(scan func(...any) error) error {
			var columns string
			err := scan(&t.Schema, &t.Unlogged, &t.RowSecurity, &columns)
			t.Columns = sqldb.SplitList(columns)
			return err
		})
	if err != nil {
		return err
	}
	return x.visit(ctx, `
		SELECT n.nspname::text
		  FROM pg_class c
		  JOIN pg_namespace n ON n.oid = c.relnamespace
		 WHERE c.relname = $1 AND c.relkind IN ('r', 'p') AND c.oid IS DISTINCT FROM to_regclass('int_lock')
		 ORDER BY n.nspname`,
		func(scan func(...any) error) error {
			var schema string
			err := scan(&schema)
			t.Elsewhere = append(t.Elsewhere, schema)
			return err
		}, "int_lock")
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
	t := &x.found.Table
	named := func(names *[]string) func(scan func(...any) error) error {
		return func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			*names = append(*names, name)
			return err
		}
	}
	err := x.visit(ctx, `
		SELECT t.tgname || CASE WHEN `+sqldb.PathlessTrigger+` THEN ' (' || p.oid::regprocedure || ' has no search_path)' ELSE '' END
		  FROM pg_trigger t
		  JOIN pg_proc p ON p.oid = t.tgfoid
		 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal
		 ORDER BY t.tgname`, named(&t.Triggers))
	if err != nil {
		return err
	}
	// A view is made by a rule.
	return x.visit(ctx, `SELECT rulename::text FROM pg_rewrite WHERE ev_class = to_regclass('int_lock') AND rulename <> '_RETURN' ORDER BY rulename`, named(&t.Rules))
}
