package bouncertest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// errNoProgram means that this machine has no PgBouncer.
var errNoProgram = errors.New("no PgBouncer (pgbouncer) found")

// program returns the path of pgbouncer, and installs it first where there is none.
func program(ctx context.Context) (string, error) {
	return product().Program(ctx, "BOUNCERTEST_BINDIR", "pgbouncer")
}

func product() servertest.Product {
	packages := map[string]string{}
	for _, manager := range []string{"apt-get", "dnf", "yum", "apk", "zypper", "pacman", "brew"} {
		packages[manager] = "pgbouncer"
	}
	return servertest.Product{
		Name: "PgBouncer", Packages: packages, Missing: errNoProgram, Commands: []string{"pgbouncer"},
		Folders: []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"},
		Instead: "put pgbouncer into PATH, or set BOUNCERTEST_BINDIR to its folder",
	}
}

// Prepares reports whether the PgBouncer of this machine can keep prepared statements
// of its clients apart in transaction mode, as 1.21 and newer do where
// max_prepared_statements says so.
func Prepares(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.InstallTimeout+startTimeout)
	defer cancel()
	path, err := program(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		t.Fatalf("ask PgBouncer for its version: %v", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(text), "PgBouncer %d.%d", &major, &minor); err != nil {
		t.Fatalf("read the version of PgBouncer in %q: %v", text, err)
	}
	return major > 1 || minor >= 21
}
