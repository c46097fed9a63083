package engine

import (
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	exec(t, e, `CREATE USER reader IDENTIFIED BY "x"`, `CREATE TABLE twin (id NUMBER)`)
	for sql, want := range map[string]int{
		`SELECT id FROM orders;`:                                               933,
		`SELECT id FROM orders LIMIT 5`:                                        933,
		`SELECT id FROM orders WHERE id = 1 LIMIT 5`:                           933,
		`SELECT id FROM orders ORDER BY id LIMIT 5`:                            933,
		`SELECT id FROM orders WHERE TRUE`:                                     904,
		`SELECT id FROM orders WHERE id = FALSE`:                               904,
		`SELECT id FROM orders AS o`:                                           933,
		`SELECT id FROM (SELECT id FROM orders) AS o`:                          933,
		`SELECT id::int FROM orders`:                                           911,
		`SELECT id FROM orders WHERE id = $1`:                                  911,
		"SELECT `id` FROM orders":                                              911,
		`SELECT id FROM orders WHERE id = ?`:                                   911,
		`SELECT id FROM nothing`:                                               942,
		`SELECT id FROM other.orders`:                                          942,
		`SELECT nothing FROM orders`:                                           904,
		`SELECT o.nothing FROM orders o`:                                       904,
		`SELECT orders.id FROM orders o`:                                       904,
		`SELECT "id" FROM orders`:                                              904,
		`SELECT nothing(id) FROM orders`:                                       904,
		`SELECT id FROM orders, twin`:                                          918,
		`SELECT 1`:                                                             923,
		`SELECT id status total FROM orders`:                                   923,
		`SELECT FROM orders`:                                                   936,
		`SELECT id FROM orders WHERE`:                                          936,
		`SELECT id FROM orders WHERE id`:                                       920,
		`SELECT id FROM`:                                                       903,
		`SELECT (id FROM orders`:                                               907,
		`SELECT 'a FROM orders`:                                                1756,
		`SELECT "a FROM orders`:                                                1740,
		`DELET FROM orders`:                                                    900,
		`SELECT TO_DATE('2024-13-01', 'YYYY-MM-DD') FROM dual`:                 1843,
		`SELECT TO_DATE('2024-02-30', 'YYYY-MM-DD') FROM dual`:                 1839,
		`SELECT TO_DATE('2024-02-32', 'YYYY-MM-DD') FROM dual`:                 1847,
		`SELECT TO_DATE('2024', 'YYYY-MM-DD') FROM dual`:                       1840,
		`SELECT TO_DATE('2024-01-01 x', 'YYYY-MM-DD') FROM dual`:               1830,
		`SELECT TO_DATE('abcd', 'YYYY') FROM dual`:                             1858,
		`SELECT TO_DATE('25', 'HH24') FROM dual`:                               1850,
		`SELECT TO_DATE('1', 'ABC') FROM dual`:                                 1821,
		`SELECT TO_NUMBER('12a') FROM dual`:                                    1722,
		`SELECT id FROM orders WHERE id = 'x'`:                                 932,
		`SELECT 1/0 FROM dual`:                                                 1476,
		`SELECT id, COUNT(*) FROM orders`:                                      937,
		`SELECT id FROM orders WHERE COUNT(*) > 1`:                             934,
		`SELECT (SELECT id FROM orders) FROM dual`:                             1427,
		`SELECT id FROM orders WHERE id = (SELECT id, total FROM orders)`:      913,
		`SELECT SYSTIMESTAMP AT TIME ZONE 'Mars/Base' FROM dual`:               1882,
		`SELECT :1 FROM dual`:                                                  1008,
		`INSERT INTO orders (id) VALUES (9)`:                                   1400,
		`INSERT INTO orders (id, updated) VALUES (1, SYSDATE)`:                 1,
		`INSERT INTO orders (id, updated) VALUES (1, 2, 3)`:                    913,
		`INSERT INTO orders (id, updated) VALUES (1)`:                          947,
		`INSERT INTO orders (id, updated) VALUES (12345678901, SYSDATE)`:       1438,
		`INSERT INTO orders (id, updated, code) VALUES (9, SYSDATE, 'abcde')`:  12899,
		`UPDATE orders SET updated = NULL`:                                     1407,
		`UPDATE orders SET nothing = 1`:                                        904,
		`CREATE TABLE orders (id NUMBER)`:                                      955,
		`CREATE TABLE z (id TIMESTAMP WITH TIME ZONE PRIMARY KEY)`:             2329,
		`ALTER SESSION SET time_zone`:                                          2248,
		`ALTER TABLE orders ADD COLUMN x NUMBER`:                               904,
		`GRANT SELECT ON V$DATABASE TO reader`:                                 2030,
		`GRANT SELECT ON orders TO nobody`:                                     1917,
		"SELECT '" + strings.Repeat("x", 4001) + "' FROM dual":                 1704,
		"SELECT 1 FROM dual WHERE 1 IN (1" + strings.Repeat(", 2", 1000) + ")": 1795,
		`CREATE TABLE z (v VARCHAR2(4001))`:                                    910,
		`SELECT NVL(1) FROM dual`:                                              909,
		"SELECT 'x' || RPAD('y', 4000, '-') FROM dual":                         1489,
		// What the engine does not do is refused.
		`SELECT id FROM orders UNION ALL SELECT id FROM orders`:       3001,
		`SELECT DISTINCT id FROM orders`:                              3001,
		`SELECT COUNT(*) FROM orders GROUP BY id`:                     3001,
		`SELECT id FROM orders FOR UPDATE`:                            3001,
		`SELECT id FROM orders WHERE status LIKE 'o%'`:                3001,
		`SELECT id FROM orders WHERE id NOT IN (1)`:                   3001,
		`SELECT id FROM orders WHERE NOT id = 1`:                      936,
		`SELECT a.id FROM orders a LEFT JOIN orders b ON a.id = b.id`: 3001,
		`SELECT id FROM orders ORDER BY 1`:                            3001,
		`SELECT id FROM orders OFFSET 1 ROWS`:                         933,
		`SELECT q.* FROM orders q`:                                    1747,
		`SELECT ROWID FROM orders`:                                    936,
		`SELECT SUM(id) FROM orders`:                                  904,
		`SELECT TO_CHAR(updated, 'DD-MON-RR') FROM orders`:            1821,
		`SELECT TO_CHAR(id, '999') FROM orders`:                       1481,
		`SELECT SYSDATE - placed FROM orders`:                         932,
		`WITH a AS (SELECT 1 FROM dual) SELECT 1 FROM a`:              900,
		`INSERT ALL INTO orders (id) VALUES (1) SELECT 1 FROM dual`:   925,
		`TRUNCATE TABLE orders`:                                       900,
		`ALTER TABLE orders MODIFY status VARCHAR2(50)`:               1735,
		`ALTER TABLE orders ADD extra NUMBER DEFAULT 1`:               3001,
		`DROP INDEX orders_by_time`:                                   3001,
		`ALTER SESSION SET CURRENT_SCHEMA = app`:                      2248,
		`BEGIN DBMS_LOCK.SLEEP(1); END;`:                              6550,
	} {
		err := e.Exec(sql)
		if err == nil && strings.HasPrefix(sql, "SELECT") { // Rows refuse too.
			_, err = e.Query("APP", sql)
		}
		if got := code(t, err); got != want {
			t.Errorf("%s: ORA-%05d, want ORA-%05d", sql, got, want)
		}
	}
}
