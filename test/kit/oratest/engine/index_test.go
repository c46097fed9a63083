package engine

import (
	"fmt"
	"strings"
	"testing"
)

// An index returns what a scan and a sort return, whichever bounds are set.
func TestIndexReturnsTheSame(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	exec(t, e, "CREATE TABLE a (id NUMBER NOT NULL, g NUMBER, v NUMBER)", "CREATE TABLE b (id NUMBER NOT NULL, g NUMBER, v NUMBER)",
		"CREATE INDEX a_up ON a (g, v, id)", "CREATE INDEX a_by_v ON a (v, id)")
	for i := range 200 {
		g, v := fmt.Sprint(i%5), fmt.Sprint(i*37%50)
		if i%7 == 0 {
			v = "NULL"
		}
		if i%11 == 0 {
			g = "NULL"
		}
		exec(t, e, fmt.Sprintf("INSERT INTO a VALUES (%d, %s, %s)", i, g, v))
	}
	exec(t, e, "DELETE FROM a WHERE id BETWEEN 50 AND 60", "UPDATE a SET v = v + 1 WHERE id > 150", "INSERT INTO b SELECT * FROM a")
	used := 0
	for _, where := range []string{
		"id >= 0", "g = 3", "g > 2", "g >= 2 AND g < 4", "g = 1 AND v > 10", "g = 1 AND v BETWEEN 10 AND 20", "g = 2 AND v = 14", "g IS NULL",
		"g = 1 AND v IS NULL", "g = 1 AND v IS NOT NULL", "v > 10", "v >= 10 AND v < 30", "v IS NULL", "g > NULL", "g = 1 AND id > 20",
	} {
		for _, order := range []string{"g, v, id", "g DESC, v DESC, id DESC", "v, id", "id"} {
			sql := "SELECT id, g, v FROM %s WHERE " + where + " ORDER BY " + order + ", id"
			with, err := e.Query("APP", fmt.Sprintf(sql, "a"))
			if err != nil {
				t.Fatal(err)
			}
			without, err := e.Query("APP", fmt.Sprintf(sql, "b"))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := e.Plan(fmt.Sprintf(sql, "a"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(plan, "INDEX") && !strings.Contains(plan, "SORT") {
				used++
			}
			if show(with) != show(without) {
				t.Errorf("WHERE %s ORDER BY %s: with the index\n%s\nwithout\n%s\n%s", where, order, show(with), show(without), plan)
			}
		}
	}
	if used < 15 {
		t.Errorf("an index spared the sort of only %d queries", used)
	}
}
