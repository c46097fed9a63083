package compose_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
)

var errNoPsql = errors.New("no psql found")

// psql returns PostgreSQL's client, which speaks more than SQL. Where there is
// none it is installed.
func psql(t *testing.T) string {
	t.Helper()
	folder, err := servertest.Product{
		Name: "PostgreSQL client",
		Packages: map[string]string{
			"apt-get": "postgresql-client", "dnf": "postgresql", "yum": "postgresql", "apk": "postgresql-client",
			"zypper": "postgresql", "pacman": "postgresql-libs", "brew": "libpq",
		},
		Find: func(context.Context) (string, error) {
			path, err := exec.LookPath("psql")
			if err == nil {
				return filepath.Dir(path), nil
			}
			found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql") // The pattern is well formed.
			if len(found) == 0 {
				return "", errNoPsql
			}
			return filepath.Dir(found[len(found)-1]), nil
		},
		Missing: errNoPsql, Instead: "put psql (15 or newer) into PATH",
	}.Programs(t.Context())
	must(t, err)
	return filepath.Join(folder, "psql")
}

// script starts psql as the images do: with nothing but the variables of its
// service.
func script(t *testing.T, environ []string, args ...string) *daemon.Process {
	t.Helper()
	p, err := launch(t, daemon.Options{
		Binary: psql(t), Name: "psql", Folder: t.TempDir(), Args: args, Env: append(environ, "PATH=/usr/bin:/bin"),
		Attributes: syscall.SysProcAttr{},
	})
	must(t, err)
	return p
}
