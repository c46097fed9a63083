package engine

import (
	"testing"
)

// FuzzStatements looks for statements that the engine answers neither with a
// result nor with a refusal.
func FuzzStatements(f *testing.F) {
	for _, sql := range []string{
		`SELECT q."ID", TO_CHAR(q.updated, 'YYYY-MM-DD HH24:MI:SS.FF9') FROM orders q WHERE q.updated >= TO_TIMESTAMP('2024', 'YYYY') ORDER BY q.updated, 1`,
		`SELECT * FROM (SELECT id, SUM(total) OVER_ FROM orders GROUP BY id HAVING COUNT(*) > 1) WHERE ROWNUM <= 5 FETCH FIRST 2 ROWS ONLY`,
		`WITH a AS (SELECT 1 x FROM dual UNION ALL SELECT 2 FROM dual) SELECT CASE x WHEN 1 THEN 'a' END FROM a, orders o WHERE x IN (1, o.id) AND EXISTS (SELECT 1 FROM a)`,
		`INSERT INTO orders (id, updated) SELECT id + 100, SYSTIMESTAMP AT TIME ZONE 'UTC' FROM orders WHERE status LIKE '%x!%' ESCAPE '!'`,
		`UPDATE orders o SET total = -total / 3, code = SUBSTR(status, -2, 3) WHERE o.id BETWEEN 1 AND 2 OR status IS NOT NULL`,
		`CREATE TABLE x (id NUMBER(5, -2) DEFAULT 3 PRIMARY KEY, v VARCHAR2(3 CHAR) NOT NULL, CONSTRAINT u UNIQUE (v, id))`,
		`SELECT INTERVAL '1 02:03:04' DAY TO SECOND, DATE '2024-01-01' - 1/86400, LPAD('a', 10, 'xy'), ROUND(1.55, 1), N'x' || q'[y]' FROM dual`,
		`DECLARE n NUMBER := 1; BEGIN SELECT COUNT(*) INTO n FROM orders; n := n / 2; DBMS_SESSION.SET_IDENTIFIER('x' || n); ROLLBACK; END;`,
		`EXPLAIN PLAN SET STATEMENT_ID = 'x' FOR SELECT a.id FROM orders a LEFT JOIN orders b ON a.id = b.id + 1 ORDER BY a.updated DESC NULLS LAST`,
		`ALTER TABLE orders ADD (x DATE DEFAULT SYSDATE, y RAW(3))`, `GRANT SELECT, READ ON orders TO PUBLIC`, `SELECT DECODE(id, 1, 'a', 'b'), NVL2(id, 1, 2) FROM orders`,
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		e := start(t, 19)
		shop(t, e)
		// Whatever happened, the database still works.
		_ = code(t, e.Exec(sql))
		_, err := e.Query("APP", sql)
		_ = code(t, err)
		exec(t, e, "SELECT COUNT(*) FROM dual")
	})
}
