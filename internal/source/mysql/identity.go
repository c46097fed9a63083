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
	return inSession(ctx, s, func(c *session) (string, error) {
		rows, err := c.rows(ctx, "read settings", settingsSQL[c.conn.mariadb])
		v := make(variables)
		for _, row := range rows {
			v.add(row)
		}
		c.conn.connector.era.Saw(v.identity())
		return v.identity(), err
	})
}

// variables are the settings that say what kind of server this is, under their
// names in lower case.
type variables map[string]string

func (v variables) add(row [][]byte) { v[strings.ToLower(string(row[0]))] = string(row[1]) }

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
