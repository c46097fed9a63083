package locks_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that uses locks links no driver, until it imports a provider.
func TestNoDriverIsLinked(t *testing.T) {
	t.Parallel()
	linked := func(pkg string) []string {
		output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(output))
	}
	drivers := []string{"github.com/jackc/pgx/v5", "modernc.org/sqlite", "github.com/sijms/go-ora/v2", "github.com/go-sql-driver/mysql"}
	api, database := linked("."), linked("./database")
	for _, d := range drivers {
		if slices.Contains(api, d) {
			t.Errorf("locks links %s", d)
		}
	}
	if !slices.Contains(database, drivers[0]) || !slices.Contains(database, drivers[1]) || slices.Contains(database, drivers[2]) {
		t.Error("locks/database links other drivers than those of the coordination database")
	}
}
