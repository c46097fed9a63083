package sqlsink_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/pgtest"
)

var update = flag.Bool("update", false, "write the golden file of statements anew")

// TestStatementsAreAccepted runs what psql accepts, too.
func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	const file = "testdata/postgres.sql"
	texts := sqlsink.Statements("public")
	all := sqlsink.DDL("public")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		all += fmt.Sprintf("\nPREPARE %q AS%s;\n", name[2:], strings.TrimRight(texts[name], "\n"))
	}
	if *update {
		if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil || string(golden) != all {
		t.Errorf("the statements differ from %s (%v); run the test with -update", file, err)
	}
	url := pgtest.New(t)
	execute(t, url, all, sqlsink.DDL("public")) // Twice changes nothing.
}
