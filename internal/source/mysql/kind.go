package mysql

import "github.com/observerd/observerd/internal/source"

// MySQL and MariaDB are one kind of source under two names, which its streams keep apart.
var (
	MySQL   = named("mysql")
	MariaDB = named("mariadb")
)

func named(scheme string) source.Kind {
	return source.Kind{
		Scheme: scheme, Example: scheme + "://USER:PASSWORD@HOST:PORT/DATABASE",
		Harmless: []string{"socket", "ssl-ca", "ssl-cert", "ssl-server-name", "tls"},
		Account:  []string{"socket"},
		Open:     func(o source.Options) (source.Database, error) { return Open(o) },
	}
}
