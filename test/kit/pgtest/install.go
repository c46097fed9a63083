package pgtest

import (
	"context"

	"github.com/observerd/observerd/test/kit/servertest"
)

// binaries returns the folder of the server programs, and installs them first
// where there are none. A folder that was named is not replaced by another.
func binaries(ctx context.Context) (string, error) {
	where := systemLocator()
	if where.bindir != "" {
		return where.find(ctx)
	}
	return product(where).Programs(ctx)
}

func product(where locator) servertest.Product {
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
		Find:    where.find,
		Missing: errNoBinaries,
		Instead: "put the initdb of version 15 or newer into PATH, or set PGTEST_BINDIR to its folder, or PGTEST_URL to a cluster",
	}
}
