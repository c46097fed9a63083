package pgtest

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/observerd/observerd/test/kit/servertest"
)

// errNoBinaries means that this machine has no PostgreSQL server programs.
var errNoBinaries = errors.New("no PostgreSQL server programs (initdb, postgres) found")

// binaries returns the folder of the server programs, and installs them first
// where there are none.
func binaries(ctx context.Context) (string, error) {
	initdb, err := product().Program(ctx, "PGTEST_BINDIR", "initdb")
	return filepath.Dir(initdb), err
}

func product() servertest.Product {
	return servertest.Product{
		Name: "PostgreSQL server",
		Packages: map[string]string{
			"apt-get": "postgresql",
			"dnf":     "postgresql-server",
			"yum":     "postgresql-server",
			"apk":     "postgresql",
			"zypper":  "postgresql-server",
			"pacman":  "postgresql",
			"brew":    "postgresql@17",
		},
		Commands: []string{"initdb", "postgres"},
		Folders: []string{
			"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
			"/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Red Hat
			"/usr/libexec/postgresql*",           // Alpine
			"/opt/homebrew/opt/postgresql@*/bin", // macOS
			"/usr/local/opt/postgresql@*/bin",    // macOS on Intel
			"/usr/local/pgsql/bin",               // built from source
		},
		Missing: errNoBinaries,
		Instead: "put the initdb of version 15 or newer into PATH, or set PGTEST_BINDIR to its folder, or PGTEST_URL to a cluster",
	}
}
