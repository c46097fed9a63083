package admin

import (
	"context"
	"database/sql"
	"fmt"
)

// SQLiteVersion returns the version of the SQLite that is built in.
func SQLiteVersion(ctx context.Context) (version string, err error) {
	// The driver is registered by lockdb, the database is in memory.
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", fmt.Errorf("ask SQLite for its version: %w", err)
	}
	defer db.Close() // It holds nothing.
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return "", fmt.Errorf("ask SQLite for its version: %w", err)
	}
	return version, nil
}
