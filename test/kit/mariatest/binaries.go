package mariatest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/observerd/observerd/test/kit/servertest"
)

// errNoBinaries means that this machine has no MariaDB server programs.
var errNoBinaries = errors.New("no MariaDB server program (mariadbd) with its system tables found")

// programs are what a server needs.
type programs struct {
	server string // mariadbd or mysqld
	// tables are the scripts that make and fill its system tables, in order.
	// What mariadb-install-db does beyond running them is of no use to tests,
	// and takes longer than they do.
	tables []string
}

// folders are where packages put the program, beside those of PATH: a daemon
// is no command for users.
var folders = []string{
	"/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/sbin", "/usr/local/libexec", "/usr/local/bin",
	"/usr/local/mysql/bin", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin",
}

// locate looks into bindir alone, when it is set, or everywhere.
func locate(bindir string) (programs, error) {
	where := append(filepath.SplitList(os.Getenv("PATH")), folders...)
	if bindir != "" {
		where = []string{bindir}
	}
	for _, name := range []string{"mariadbd", "mysqld"} {
		for _, dir := range where {
			// The scripts lie beside the real program, not beside a link to it.
			server, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			if tables := scripts(filepath.Dir(server)); tables != nil && executable(server) {
				return programs{server, tables}, nil
			}
		}
	}
	return programs{}, errNoBinaries
}

func executable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
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
// A folder that was named is not replaced by another.
func binaries(ctx context.Context) (programs, error) {
	bindir := os.Getenv("MARIATEST_BINDIR")
	if bindir == "" {
		if _, err := product().Programs(ctx); err != nil {
			return programs{}, err
		}
	}
	return locate(bindir)
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
		Find: func(context.Context) (string, error) {
			found, err := locate("")
			return filepath.Dir(found.server), err
		},
		Missing: errNoBinaries,
		Instead: "put mariadbd into PATH, or set MARIATEST_BINDIR to its folder, or MARIATEST_URL to a server",
	}
}
