package engine

import "testing"

func TestSelect(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	for sql, want := range map[string]string{
		`SELECT id FROM orders ORDER BY id`:                                                                          "1;2;3",
		`SELECT id FROM orders ORDER BY updated DESC`:                                                                "2;1;3",
		`SELECT id FROM orders ORDER BY placed`:                                                                      "1;3;2",
		`SELECT id FROM orders ORDER BY placed DESC, id`:                                                             "2;3;1",
		`SELECT id FROM orders ORDER BY placed DESC NULLS LAST`:                                                      "3;1;2",
		`SELECT id FROM orders ORDER BY placed NULLS FIRST`:                                                          "2;1;3",
		`SELECT id x FROM orders ORDER BY x DESC`:                                                                    "3;2;1",
		`SELECT total FROM orders ORDER BY total`:                                                                    "-0.25;10.5;20",
		`SELECT code || '|' FROM orders WHERE code = 'ab'`:                                                           "ab  |",
		`SELECT id FROM orders WHERE status IS NULL`:                                                                 "3",
		`SELECT id FROM orders WHERE status = ''`:                                                                    "",
		`SELECT id FROM orders WHERE status IN ('open', 'none')`:                                                     "1",
		`SELECT (SELECT MAX(id) FROM orders) m FROM dual`:                                                            "3",
		`SELECT q."ID" FROM (SELECT id, updated FROM orders WHERE id > 1) q ORDER BY q.updated`:                      "3;2",
		`SELECT * FROM (SELECT id FROM orders ORDER BY updated, id) WHERE ROWNUM <= 2`:                               "3;1",
		`SELECT * FROM (SELECT id FROM orders ORDER BY id DESC) WHERE ROWNUM < 2`:                                    "3",
		`SELECT id FROM orders ORDER BY id FETCH FIRST 2 ROWS ONLY`:                                                  "1;2",
		`SELECT id FROM orders WHERE id IN (SELECT id FROM orders WHERE id < 3) ORDER BY id`:                         "1;2",
		`SELECT a.id, b.id FROM orders a, orders b WHERE a.id = b.id + 1 ORDER BY a.id`:                              "2,1;3,2",
		`SELECT DECODE(status, 'open', 1, 3) FROM orders ORDER BY id`:                                                "1;3;3",
		`SELECT id FROM orders WHERE ROWNUM > 1`:                                                                     "",
		`SELECT COUNT(*), COUNT(status), MIN(total), MAX(id) FROM orders`:                                            "3,2,-0.25,3",
		`SELECT COUNT(*) FROM orders WHERE id > 9`:                                                                   "0",
		`SELECT MAX(id) FROM orders WHERE id > 9`:                                                                    "NULL",
		`SELECT CASE WHEN id = 1 THEN 'one' WHEN status IS NULL THEN 'none' ELSE 'more' END FROM orders ORDER BY id`: "one;more;none",
		`SELECT CASE id WHEN 1 THEN 'one' END FROM orders ORDER BY id`:                                               "one;NULL;NULL",
		`SELECT /*+ INDEX(q) */ COUNT(*) -- all of them
		   FROM app.orders /* here */ q`: "3",
	} {
		rows, err := e.Query("APP", sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		} else if got := show(rows); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
