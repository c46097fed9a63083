package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// One database is of another version and its host in another zone than everybody
// else, so that a clock which is read there without its zone would show. What
// the types of timestamps differ in is TestTimestamps.
func TestContract(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	for column, test := range map[string]struct {
		now     string
		options engine.Options
	}{
		"DATE":                     {"CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)", engine.Options{Version: 11}},
		"TIMESTAMP WITH TIME ZONE": {"SYSTIMESTAMP", engine.Options{OSZone: tokyo}},
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture { return fixture(t, column, test.now, test.options) })
		})
	}
}

func fixture(t *testing.T, column, now string, o engine.Options) sourcetest.Fixture {
	d := emulate(t, o)
	d.exec("CREATE TABLE unused (id NUMBER)")
	f := contract(column, now)
	f.Source = d.open(oracle.Options{})
	f.In = func(loc *time.Location) sourcetest.Source { return d.open(oracle.Options{Location: loc}) }
	f.Unreachable = open(t, oracle.Options{URL: "oracle://someone:secret@127.0.0.1:1/nowhere"})
	f.Exec = func(text string) {
		if statements := dialect(text); len(statements) < 1000 || !d.load(statements) {
			d.exec(statements...)
		}
		if strings.Contains(text, "CREATE TABLE orders") {
			d.exec("CREATE OR REPLACE FUNCTION empty_orders RETURN NUMBER IS BEGIN DELETE FROM orders; RETURN 1; END;")
		}
	}
	f.Begin = func() (func(string), func()) {
		exec, commit := d.begin()
		return func(text string) {
			for _, one := range dialect(text) {
				exec(one)
			}
		}, commit
	}
	f.Query = d.rowsOf
	f.Explain = func(text string) string {
		return strings.ToLower(d.explain(strings.ReplaceAll(text, "Z'", " +00:00'")))
	}
	return f
}

// contract is what Oracle looks like to the suite.
func contract(column, now string) sourcetest.Fixture {
	return sourcetest.Fixture{
		Hides:       true,
		Sort:        "sort order by",
		Placeholder: ":1",
		Now:         now,
		Write:       "SELECT empty_orders AS order_id FROM DUAL",
		Exact:       true,
		Types: map[string]string{
			"text": "VARCHAR2(4000)", "long": "CLOB", "name": "VARCHAR2(200)", "integer": "NUMBER(19)", "decimal": "NUMBER", "float": "BINARY_FLOAT", "double": "BINARY_DOUBLE", "bytes": "RAW(100)", "timestamp": column, "column": "",
		},
		KeyFamilies: []sourcetest.KeyFamily{
			{Types: []string{"NUMBER(8)", "NUMBER(10,2)", "NUMBER"}, Literal: func(n int) string { return fmt.Sprint(n*7 + 1) }},
			{Types: []string{"VARCHAR2(20)", "VARCHAR2(40)", "VARCHAR2(60)"}, Literal: func(n int) string { return fmt.Sprintf("'%d'", n*7+1) }},
		},
		AlterKey: sourcetest.Recreate,
		Wider: []sourcetest.Wider{
			{Narrow: "NUMBER(10)", Wide: "NUMBER(12,2)", Values: []string{"-10", "0", "7", "100"}, Keys: []string{"-10", "0", "7", "100"}, Same: true},
			{Narrow: "CHAR(4)", Wide: "CHAR(8)", Values: []string{"'a'", "'b'"}, Keys: []string{"a", "b"}, Same: true},
		},
		Decimal:     func(text string) string { return text },
		Poison:      "'a' || CHR(0)",
		BadTime:     "TO_TIMESTAMP('0001-01-01', 'YYYY-MM-DD') - INTERVAL '4000' DAY",
		Timeless:    "is outside of the years 1 to 9999",
		Edges:       edges(),
		Capitals:    true,
		EmptyIsNull: true,
		FullNulls:   true,
		UnkeyedTime: strings.Contains(column, "TIME ZONE"),
	}
}
