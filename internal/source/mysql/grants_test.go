package mysql_test

import (
	"crypto/rand"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// deployed runs deploy/sql/mysql.sql for a new account, but for the statements
// that hold one of these words, and returns its URL.
func deployed(t *testing.T, address string, without ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/sql/mysql.sql")
	if err != nil {
		t.Fatal(err)
	}
	name, password := "reader_"+strings.ToLower(rand.Text())[:16], rand.Text()
	script := strings.NewReplacer("'observerd'", "'"+name+"'", "'change-me'", "'"+password+"'", "`shop`", "`"+database(address)+"`").Replace(string(text))
	owner := connect(t, address)
	t.Cleanup(func() { exec(t, connect(t, with(t, address, "", "mysql")), "DROP USER '"+name+"'@'%'") })
	for _, statement := range strings.Split(uncommented(script), ";") {
		skip := strings.TrimSpace(statement) == ""
		for _, word := range without {
			skip = skip || strings.Contains(statement, word)
		}
		if !skip {
			exec(t, owner, statement)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}

func uncommented(script string) string {
	var lines []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// described asks until the source had its turn to look at the transactions, for
// which all tests of a server stand in line.
func described(t *testing.T, s *mysql.Source, q observer.Query) (d source.Description) {
	t.Helper()
	eventually(t, "a look at the transactions", func() bool {
		var err error
		if d, err = s.Describe(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(strings.Join(d.Warnings, " "), "more than ten times a second")
	})
	return d
}

func TestGrants(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, at datetime NOT NULL, doc json, KEY (at, id));
		CREATE TABLE stock (sku varchar(20) PRIMARY KEY); CREATE TABLE secrets (id int PRIMARY KEY);
		INSERT INTO orders VALUES (1, UTC_TIMESTAMP(), '{ }')`)
	q := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}

	s := open(t, mysql.Options{URL: deployed(t, address)})
	d := described(t, s, q)
	if !d.HorizonExact || d.KeyUnique != source.Yes || d.OrderIndexed != source.Yes || len(d.Warnings) != 0 {
		t.Errorf("with all grants: %+v", d)
	}
	rows := sourcetest.ReadAll(t, s, q, observer.Range{})
	if len(rows) != 1 || !strings.Contains(string(rows[0].Data), `"doc":{}`) {
		t.Errorf("rows = %+v", rows)
	}
	if _, err := s.Describe(t.Context(), observer.Query{Table: "secrets", Key: []string{"id"}}); observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("a table that was not granted: %v", err)
	}

	blind := open(t, mysql.Options{URL: deployed(t, address, "PROCESS")})
	if h := horizon(t, blind, q); h.Exact || h.Lag < time.Minute || h.Lag > time.Minute+time.Second {
		t.Errorf("horizon = %+v without PROCESS, want a minute behind", h)
	}
	q.Overlap = 5 * time.Minute
	if h := horizon(t, blind, q); h.Exact || h.Lag < q.Overlap || h.Lag > q.Overlap+time.Second {
		t.Errorf("horizon = %+v without PROCESS, want the overlap", h)
	}
	if d := described(t, blind, q); d.HorizonExact || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "GRANT PROCESS ON *.*") {
		t.Errorf("without PROCESS: %+v, want a warning that names the grant", d)
	}
	narrow := open(t, mysql.Options{URL: mariatest.NewRole(t, address, "SELECT (id, at, doc) ON orders")})
	rows = sourcetest.ReadAll(t, narrow, q, observer.Range{})
	if len(rows) != 1 || !strings.Contains(string(rows[0].Data), `"doc":"{ }"`) {
		t.Errorf("with a right to columns alone: rows = %+v", rows)
	}
}
