package sourcetest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// quotes are those of identifiers, in every dialect.
var quotes = regexp.MustCompile("[\"`]")

// plainSQL has columns whose values are guarded and converted where they are sent. Every
// statement of a read shows their names alone, and is one that the database accepts.
func plainSQL(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, note {long}, weight {float}, updated_at {timestamp})", ordersIndex,
		"CREATE VIEW shown AS SELECT * FROM orders",
		"INSERT INTO orders VALUES (1, 'a', 1.5, '2024-05-01 10:00:00')", "INSERT INTO orders VALUES (2, 'b', 2.5, NULL)")
	from := f.read(t, orders(), "")[0].cursor
	table := orders()
	table.Stream = "" // Oracle's statements name it.
	view, query, all := table, table, table
	view.Table = "shown"
	query.Table, query.SQL = "", "SELECT * FROM orders"
	all.Timestamp, all.Columns = "", []string{"note", "weight"}
	for name, q := range map[string]observer.Query{"table": table, "view": view, "query": query, "all": all} {
		columns := "q.order_id, q.note, q.weight, q.updated_at"
		if q.Columns != nil {
			columns = "q.note, q.weight, q.order_id"
		}
		for _, in := range []observer.Range{{}, {From: from}, {Limit: 1}} {
			text, err := f.Source.SQL(t.Context(), q, in)
			if err != nil {
				t.Fatal(err)
			}
			statements := strings.Split(text.Plain, ";\n")
			if text.Full == text.Plain || len(statements) != strings.Count(text.Full, ";\n")+1 {
				t.Errorf("%s, %+v: the full statements are\n%s\nand the plain ones\n%s", name, in, text.Full, text.Plain)
			}
			for _, statement := range statements {
				bare := quotes.ReplaceAllString(strings.ToLower(statement), "")
				if f.Explain(strings.ReplaceAll(statement, f.Placeholder, "'"+from+"'")) == "" || strings.Count(bare, "select "+columns+"\nfrom ") != 1 || strings.Contains(bare, "lateral") {
					t.Errorf("%s, %+v: want the columns %s alone of\n%s", name, in, columns, statement)
				}
			}
		}
	}
}
