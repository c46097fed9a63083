package mariatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/observerd/observerd/test/kit/servertest"
)

// errNoBinaries means that this machine has no MariaDB server programs.
var errNoBinaries = errors.New("no MariaDB server program (mariadbd) with its system tables found")

// programs are what a server needs.
type programs struct {
	server string // mariadbd
	// tables are the scripts that make and fill its system tables, in order.
	// What mariadb-install-db does beyond running them is of no use to tests,
	// and takes longer than they do.
	tables []string
}

// scripts returns those of the server in bindir, or nil where one is missing.
func scripts(bindir string) []string {
	for _, share := range []string{"../share/mysql", "../share/mariadb", "../share"} {
		for _, prefix := range []string{"mariadb_", "mysql_"} {
			var found []string
			for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
				path := filepath.Join(bindir, share, prefix+name+".sql")
				if _, err := os.Stat(path); err == nil {
					found = append(found, path)
				}
			}
			if len(found) == 3 {
				return found
			}
		}
	}
	return nil
}

// binaries returns the programs, and installs them first where there are none.
func binaries(ctx context.Context) (programs, error) {
	server, err := product().Program(ctx, "MARIATEST_BINDIR", "mariadbd")
	if err != nil {
		return programs{}, err
	}
	tables := scripts(filepath.Dir(server))
	if tables == nil {
		return programs{}, fmt.Errorf("%w: beside %s", errNoBinaries, server)
	}
	return programs{server, tables}, nil
}

// product names packages without a system service where there are such: what
// the tests need is the programs alone.
func product() servertest.Product {
	return servertest.Product{
		Name: "MariaDB server",
		Packages: map[string]string{
			"apt-get": "mariadb-server-core",
			"dnf":     "mariadb-server",
			"yum":     "mariadb-server",
			"apk":     "mariadb",
			"zypper":  "mariadb",
			"pacman":  "mariadb",
			"brew":    "mariadb",
		},
		Commands: []string{"mariadbd"},
		Folders: []string{
			"/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/sbin", "/usr/local/libexec", "/usr/local/bin",
			"/usr/local/mysql/bin", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin",
		},
		Missing: errNoBinaries,
		Instead: "put mariadbd into PATH, or set MARIATEST_BINDIR to its folder, or MARIATEST_URL to a server",
	}
}
