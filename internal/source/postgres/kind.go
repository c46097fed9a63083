package postgres

import "github.com/observerd/observerd/internal/source"

// Kind is PostgreSQL, and what speaks its protocol.
var Kind = source.Kind{
	Scheme: "postgres", Aliases: []string{"postgresql"}, Example: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
	Harmless: []string{"application_name", "client_encoding", "connect_timeout", "dbname", "host", "lc_monetary", "port", "search_path", "sslmode",
		"sslrootcert", "target_session_attrs", "user"},
	Account:     []string{"user", "host", "port", "dbname"},
	HasDefaults: true,
	Open:        func(o source.Options) (source.Database, error) { return Open(o) },
}
