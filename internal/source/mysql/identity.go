package mysql

import (
	"context"
	"strings"
)

// Identity implements [observer.Source]. MySQL's is that of its group, or else
// its server_uuid; MariaDB's that of its Galera cluster. A MariaDB without a
// cluster has none: its server_uid is made of the network card and the port, so
// it changes with a container and stays when another data set is restored.
func (s *Source) Identity(ctx context.Context) (string, error) {
	v, err := inSession(ctx, s, func(c *session) (variables, error) { return c.variables(ctx) })
	return v.identity(), err
}

// variables are the settings that say what kind of server this is, under their
// names in lower case.
type variables map[string]string

const (
	mysqlVariables = `SHOW GLOBAL VARIABLES WHERE Variable_name IN
 ('server_uuid', 'group_replication_group_name', 'read_only', 'innodb_read_only')`
	mariadbVariables = `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'innodb_read_only')`
	galeraStatus     = `SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_state_uuid', 'wsrep_cluster_size')`
)

func (c *session) variables(ctx context.Context) (variables, error) {
	statements := []string{mysqlVariables}
	if c.conn.mariadb {
		statements = []string{mariadbVariables, galeraStatus}
	}
	v := make(variables)
	for _, sql := range statements {
		rows, err := c.rows(ctx, "read settings", sql)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			v[strings.ToLower(string(row[0]))] = string(row[1])
		}
	}
	return v, nil
}

func (v variables) identity() string {
	for _, name := range []struct{ variable, kind string }{
		{"group_replication_group_name", "group"},
		{"server_uuid", "server"},
		{"wsrep_cluster_state_uuid", "galera"},
	} {
		if value := v[name.variable]; value != "" && strings.Trim(value, "0-") != "" {
			return name.kind + ":" + value
		}
	}
	return ""
}

// cluster reports whether other servers accept writes for the same tables, whose
// transactions this one does not show.
func (v variables) cluster() bool {
	size := v["wsrep_cluster_size"]
	return v["group_replication_group_name"] != "" || size != "" && size != "0" && size != "1"
}

// readOnly reports whether only replication writes here.
func (v variables) readOnly() bool {
	on := func(name string) bool { return v[name] == "ON" || v[name] == "1" }
	return on("read_only") || on("innodb_read_only")
}
