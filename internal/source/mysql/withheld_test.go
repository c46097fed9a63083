package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// SIGNAL gives any number to any text, so no number is quoted once rows are read.
func TestErrorsWithholdValues(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v text)`)
	exec(t, owner, `INSERT INTO orders VALUES (1, 'harmless'), (2, '`+sourcetest.Mark+`')`)
	s := open(t, mysql.Options{URL: address})
	for number, class := range map[int]observer.Class{
		1045: observer.ClassQuery, 1044: observer.ClassQuery, 1049: observer.ClassSettings, 1226: observer.ClassResource,
		1053: observer.ClassUnreachable, 1317: observer.ClassKilled, 1969: observer.ClassTimeout, 1412: observer.ClassRetry,
		1054: observer.ClassQuery, 1142: observer.ClassQuery, 1146: observer.ClassQuery, 1064: observer.ClassQuery,
		1292: observer.ClassData, 1644: observer.ClassUnknown, 31000: observer.ClassUnknown,
	} {
		leak := fmt.Sprint("leak", number)
		exec(t, owner, strings.NewReplacer("{leak}", leak, "{number}", fmt.Sprint(number), "{mark}", sourcetest.Mark).Replace(
			`CREATE FUNCTION {leak}(v text) RETURNS text BEGIN
				IF v = '{mark}' THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = v, CONSTRAINT_NAME = v, TABLE_NAME = v; END IF;
				RETURN v; END`))
		exec(t, owner, "CREATE FUNCTION rash"+fmt.Sprint(number)+"() RETURNS text DETERMINISTIC RETURN (SELECT "+leak+"(v) FROM orders WHERE id = 2)")
		for _, q := range []observer.Query{
			{SQL: "SELECT id, " + leak + "(v) AS v FROM orders", Key: []string{"id"}},
			{SQL: "SELECT " + leak + "(v) AS v FROM orders", Key: []string{"v"}},
			// A server may compute what has one row at most to describe it, and to explain it.
			{SQL: "SELECT max(" + leak + "(v)) AS v FROM orders", Key: []string{"v"}},
			{SQL: "SELECT id FROM orders WHERE id = 2 AND " + leak + "(v) > ''", Key: []string{"id"}},
			// It is called while the statement is prepared.
			{SQL: "SELECT id FROM orders WHERE v LIKE 'a' ESCAPE rash" + fmt.Sprint(number) + "()", Key: []string{"id"}},
		} {
			err := sourcetest.Withheld(t, s, q)
			sourcetest.Refusal(t, err, class, fmt.Sprint(number), fmt.Sprintf("(MySQL error %d)", number))
			if class == observer.ClassQuery && !strings.Contains(q.SQL, "rash") {
				sourcetest.Refusal(t, err, class, fmt.Sprint(number), source.Sound)
			}
		}
	}
}

// What the server says of the statement alone is quoted: it names what is missing.
func TestErrorsNameWhatTheStatementLacks(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v text)`)
	exec(t, owner, `INSERT INTO orders VALUES (1, 'a')`)
	exec(t, owner, `CREATE TABLE gone (id int)`)
	exec(t, owner, `CREATE VIEW broken AS SELECT id FROM gone`)
	exec(t, owner, `DROP TABLE gone`)
	stranger := open(t, mysql.Options{URL: mariatest.NewRole(t, address, "SELECT (id) ON orders", "SELECT ON broken")})
	for _, test := range []struct {
		sql, code, words string
	}{
		{"SELECT v AS id FROM orders", "1143", "SELECT command denied to user"},
		{"SELECT o.id FROM orders q", "1054", "Unknown column"},
		{"SELECT id FROM ordres", "1142", "for table `"},
		{"SELECT id FROM broken", "1356", ".broken' references invalid table(s)"},
		{"SELECT idd FROM", "1064", "You have an error in your SQL syntax"},
	} {
		err := sourcetest.Withheld(t, stranger, observer.Query{SQL: test.sql, Key: []string{"id"}})
		sourcetest.Refusal(t, err, observer.ClassQuery, test.code, test.words, "(MySQL error "+test.code+")")
	}
}

// What is refused in a statement is not our account.
func TestRefusalsInStatementsAreNotOfTheAccount(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	exec(t, connect(t, address), `CREATE FUNCTION refuse() RETURNS int BEGIN SIGNAL SQLSTATE '28000' SET MYSQL_ERRNO = 1045; RETURN 1; END`)
	gate := &book{}
	s := open(t, mysql.Options{URL: address, Gate: gate})
	_, err := sourcetest.TryRead(s, observer.Query{SQL: "SELECT refuse() AS id", Key: []string{"id"}}, observer.Range{})
	sourcetest.Refusal(t, err, observer.ClassQuery, "1045")
	if gate.said() != "allow accepted" {
		t.Errorf("the gate was told %q", gate.said())
	}
}
