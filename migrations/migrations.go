// Package migrations holds the schema of the coordination database: numbered
// SQL per dialect, each file one transaction, never edited after a release.
// Package lockdb runs them.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Postgres returns the migrations for PostgreSQL.
func Postgres() fs.FS { return sub("postgres") }

// SQLite returns the migrations for SQLite.
func SQLite() fs.FS { return sub("sqlite") }

func sub(dir string) fs.FS {
	tree, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // The folder is embedded above, by name.
	}
	return tree
}
