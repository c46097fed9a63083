package engine

import (
	"testing"
)

// FuzzStatements looks for statements that the engine answers neither with a
// result nor with a refusal.
func FuzzStatements(f *testing.F) {
	for _, sql := range []string{
		`SELECT q."ID", TO_CHAR(q.updated, 'YYYY-MM-DD HH24:MI:SS.FF9') FROM orders q WHERE q.updated >= TO_TIMESTAMP('2024', 'YYYY') ORDER BY q.updated, 1`,
		`SELECT * FROM (SELECT MAX(id) OVER_ FROM orders ORDER BY id) WHERE ROWNUM <= 5 FETCH FIRST 2 ROWS ONLY`,
		`SELECT CASE x WHEN 1 THEN 'a' END FROM (SELECT id x FROM orders) a, orders o WHERE x IN (1, o.id) AND x IN (SELECT id FROM orders)`,
		`INSERT INTO orders (id, updated) SELECT id + 100, SYSTIMESTAMP AT TIME ZONE 'UTC' FROM orders WHERE status = 'x'`,
		`UPDATE orders o SET total = -total / 3, code = CHR(65) WHERE o.id BETWEEN 1 AND 2 OR status IS NOT NULL`,
		`CREATE TABLE x (id NUMBER(5, -2) DEFAULT 3 PRIMARY KEY, v VARCHAR2(3 CHAR) NOT NULL, CONSTRAINT u UNIQUE (v, id))`,
		`SELECT SYSDATE - INTERVAL '1' DAY, DATE '2024-01-01' - 1/86400, RPAD('a', 10, 'xy'), N'x' || 'y' FROM dual`,
		`DECLARE n NUMBER := 1; BEGIN SELECT COUNT(*) INTO n FROM orders; n := n / 2; DBMS_SESSION.SET_IDENTIFIER('x' || n); ROLLBACK; END;`,
		`EXPLAIN PLAN SET STATEMENT_ID = 'x' FOR SELECT a.id FROM orders a, orders b WHERE a.id = b.id + 1 ORDER BY a.updated DESC NULLS LAST`,
		`ALTER TABLE orders ADD x DATE`, `GRANT SELECT, READ ON orders TO app`, `SELECT DECODE(id, 1, 'a', 'b') FROM orders`,
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
