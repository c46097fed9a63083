package cluster_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// Rows of these lengths: each of four columns of a large one, which MariaDB takes in
// one statement; a row that is only just no poison; and how many there are of them.
const (
	largeColumn = 15_000_000
	fittingRow  = 1_000_000
	largeRows   = 3
	fittingRows = 30
)

// most is what a node may have in memory beside such rows. It takes 73 to 96 MiB, and
// more where the collector gets no processor; without a bound in the statements 760 MiB
// and more.
const most = 200 << 20

var paperObservers = []string{
	"{id: table, type: order, source: shop, table: papers, key: id, timestamp: updated_at}",
	"{id: view, type: order, source: shop, table: shown, key: id, timestamp: updated_at}",
	"{id: query, type: order, source: shop, query: SELECT * FROM papers, key: id, timestamp: updated_at}",
	"{id: by-key, type: order, source: shop, table: papers, key: id, timestamp: updated_at, detect: snapshot}",
}

// papers are what each of the databases is filled by: text, bytes and long words.
type papers struct {
	driver, dsn, url string
	types            [4]string
	// long writes an expression for text of so many characters, from a digit on.
	long func(length string) string
	rows string // FROM of the numbers n up to %d
	at   string // a timestamp of a minute ago and more, from the number n

	oracle *engine.Engine // of the emulator, which needs none of the above
}

func paperSources(t *testing.T) map[string]papers {
	t.Helper()
	const recursive = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s) s"
	path := filepath.Join(t.TempDir(), "papers.db")
	postgres, maria := pgtest.New(t), mariatest.New(t)
	u, err := url.Parse(maria)
	must(t, err)
	return map[string]papers{
		"sqlite": {
			driver: "sqlite", dsn: "file:" + path, url: "sqlite:" + path,
			types: [4]string{"TEXT", "VARCHAR(10)", "BLOB", "INTEGER"},
			long:  func(length string) string { return "replace(hex(zeroblob(" + length + " / 2)), '00', 'ab')" },
			rows:  recursive, at: "datetime('now', '-1 hour', n || ' seconds')",
		},
		"postgres": {
			driver: "pgx", dsn: postgres, url: postgres,
			types: [4]string{"text", "varchar", "json", "text[]"},
			rows:  recursive, at: "now() - interval '1 hour' + n * interval '1 second'",
		},
		"mariadb": {
			driver: "mysql", dsn: fmt.Sprintf("%s@tcp(%s)%s", u.User.Username(), u.Host, u.Path), url: maria,
			types: [4]string{"LONGTEXT", "MEDIUMTEXT CHARACTER SET latin1", "LONGBLOB", "LONGTEXT"},
			rows:  recursive, at: "NOW() - INTERVAL 1 HOUR + INTERVAL n SECOND",
		},
		"oracle": oraclePapers(t),
	}
}

// value writes a value of the i-th column.
func (p papers) value(i int, length int) string {
	text := fmt.Sprintf("repeat('ab', %d)", length/2)
	if p.long != nil {
		text = p.long(strconv.Itoa(length))
	}
	switch p.types[i] {
	case "json":
		return `('"' || ` + text + ` || '"')::json`
	case "text[]":
		return "ARRAY[" + text + "]"
	case "BLOB":
		return "CAST(" + text + " AS BLOB)"
	}
	return text
}

func oraclePapers(t *testing.T) papers {
	t.Helper()
	e := engine.New(engine.Options{})
	server := oratest.Start(t, oratest.Options{Users: map[string]string{"app": "secret"}, Handler: e})
	return papers{url: server.URL("app", "secret"), oracle: e}
}

func (p papers) fillOracle(t *testing.T) {
	t.Helper()
	run := func(text string, binds ...any) {
		t.Helper()
		must(t, p.oracle.Exec(text, binds...))
	}
	run("CREATE TABLE papers (id NUMBER(9) PRIMARY KEY, a CLOB, b VARCHAR2(10), c CLOB, d CLOB, updated_at TIMESTAMP(6) NOT NULL)")
	run("CREATE INDEX papers_by_time ON papers (updated_at, id)")
	run("CREATE VIEW shown AS SELECT * FROM papers")
	fitting, large := strings.Repeat("ab", fittingRow/2), strings.Repeat("ab", largeColumn/2)
	for n := 1; n <= largeRows+fittingRows; n++ {
		values := [3]any{fitting, nil, nil}
		if n <= largeRows {
			values = [3]any{large, large, large}
		}
		run(fmt.Sprintf("INSERT INTO papers VALUES (%d, :1, 'b', :2, :3, SYSTIMESTAMP - INTERVAL '1' HOUR)", n), values[:]...)
	}
}

func (p papers) fill(t *testing.T) {
	t.Helper()
	if p.oracle != nil {
		p.fillOracle(t)
		return
	}
	db := openSQL(t, p.driver, p.dsn)
	run := func(format string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE papers (id integer PRIMARY KEY, a %s, b %s, c %s, d %s, updated_at %s NOT NULL)",
		p.types[0], p.types[1], p.types[2], p.types[3], map[bool]string{true: "timestamptz", false: "timestamp"}[p.driver == "pgx"])
	run("CREATE INDEX papers_by_time ON papers (updated_at, id)")
	run("CREATE VIEW shown AS SELECT * FROM papers")
	numbers := fmt.Sprintf(p.rows, largeRows+fittingRows)
	run("INSERT INTO papers SELECT n, %s, 'b', NULL, NULL, %s FROM %s", p.value(0, fittingRow), p.at, numbers)
	for i, column := range []string{"a", "b", "c", "d"} { // One at a time: MariaDB's log bounds what a statement may write.
		run("UPDATE papers SET %s = %s WHERE id <= %d", column, p.value(i, largeColumn), largeRows)
	}
	must(t, db.Close())
}

// TestLargeRowsFitIntoMemory lets a real node read rows that are many times as large
// as a row may be, beside others that are just within that, from a table, a view, a
// query and by key. It looks at the peak of the node's memory.
func TestLargeRowsFitIntoMemory(t *testing.T) {
	t.Parallel()
	for name, p := range paperSources(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.fill(t)
			m := remember(t, pgtest.New(t))
			h := newHost(t, m, p.url)
			c := h.config("a", settings{})
			c.Observers = paperObservers
			d := h.launch(t, c)
			for _, stream := range []string{"table", "view", "query", "by-key"} {
				eventually(t, func() error { return m.papers(t, stream) })
			}
			peak := peakOf(t, d.PID())
			t.Logf("peak %d MiB", peak>>20)
			if peak > most {
				t.Errorf("the peak of memory was %d MiB, want at most %d", peak>>20, most>>20)
			}
		})
	}
}

// papers reports whether a stream has all rows, the large ones as poison.
func (m memory) papers(t *testing.T, stream string) error {
	t.Helper()
	var delivered, poison int
	var keys, reason sql.NullString
	err := m.visit(t, `
		SELECT (SELECT coalesce(max(last_seq), 0) FROM obs_sink_offset WHERE sink = 'file' AND stream = '`+stream+`'),
		       count(*), string_agg(key, ' ' ORDER BY key), min(reason)
		  FROM obs_dead
		 WHERE stream = '`+stream+`'`,
		func(scan func(...any) error) error { return scan(&delivered, &poison, &keys, &reason) })
	if err != nil {
		return err
	}
	if delivered != fittingRows || keys.String != "1 2 3" || reason.String != "the row is larger than 1048576 bytes" {
		return fmt.Errorf("%s: %d events delivered, want %d; %d poison rows %q: %s", stream, delivered, fittingRows, poison, keys.String, reason.String)
	}
	return nil
}

// peakOf is the high-water mark of a process.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			must(t, err)
			return kib << 10
		}
	}
	t.Fatal("the kernel does not tell the peak of memory")
	return 0
}
