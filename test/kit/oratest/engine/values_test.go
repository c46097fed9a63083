package engine

import (
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	for expression, want := range map[string]string{
		// Numbers are exact.
		`1/3`:   "0.3333333333333333333333333333333333333333",
		`2/3*3`: "2",
		`12345678901234567890123456789012345678+1`: "12345678901234567890123456789012345679",
		`0.1+0.2`:       "0.3",
		`1e3`:           "1000",
		`-5 - -2`:       "-3",
		`TO_CHAR(0.5)`:  ".5",
		`TO_CHAR(-0.5)`: "-.5",
		`TO_CHAR(1200)`: "1200",
		`TO_CHAR(12345678901234567890123456789012345678,'TM9')`: "12345678901234567890123456789012345678",
		`TO_NUMBER(' 1.50 ')`:           "1.5",
		`'3' + 4`:                       "7",
		`MOD(-7, 3)`:                    "-1",
		`FLOOR(-1.5)`:                   "-2",
		`CAST('12.345' AS NUMBER(5,2))`: "12.35",
		`CAST(1.5 AS BINARY_DOUBLE)`:    "1.5",
		// Text.
		`'' || 'a'`:                         "a",
		`NVL('', 'null')`:                   "null",
		`LENGTH('')`:                        "NULL",
		`LENGTH('é')`:                       "1",
		`DBMS_LOB.GETLENGTH(TO_CLOB('ab'))`: "2",
		`RPAD('a', 3, '-')`:                 "a--",
		`RAWTOHEX(HEXTORAW('0aff'))`:        "0AFF",
		`COALESCE(NULL, NULL, 'c')`:         "c",
		`CHR(65)`:                           "A",
		// Times: the host's zone is Berlin, the session's +00:00.
		`TO_CHAR(SYSDATE, 'YYYY-MM-DD HH24:MI:SS')`:                                                   "2024-05-01 12:00:00",
		`TO_CHAR(SYSTIMESTAMP, 'YYYY-MM-DD HH24:MI:SS.FF3 TZH:TZM')`:                                  "2024-05-01 12:00:00.123 +02:00",
		`TO_CHAR(SYSDATE - 1/24, 'HH24:MI')`:                                                          "11:00",
		`TO_CHAR(SYSDATE + 0.5, 'YYYY-MM-DD HH24:MI')`:                                                "2024-05-02 00:00",
		`TO_CHAR(CAST(SYSTIMESTAMP AS TIMESTAMP), 'HH24:MI:SS.FF9')`:                                  "12:00:00.123456000",
		`TO_CHAR(TIMESTAMP '2024-05-01 10:00:00 Europe/Berlin' AT TIME ZONE 'UTC', 'HH24:MI')`:        "08:00",
		`TO_CHAR(TIMESTAMP '2024-05-01 10:00:00.5' + INTERVAL '1' MINUTE, 'HH24:MI:SS.FF1')`:          "10:01:00.5",
		`TO_CHAR(TIMESTAMP '2024-05-01 10:00:00' - NUMTODSINTERVAL(1.5, 'SECOND'), 'HH24:MI:SS.FF2')`: "09:59:58.50",
		`TO_TIMESTAMP('2024-05-01 10:11:12.123456789', 'YYYY-MM-DD HH24:MI:SS.FF9')`:                  "2024-05-01 10:11:12.123456789Z",
		`TO_TIMESTAMP_TZ('2024-05-01 10:00:00 -05:30', 'YYYY-MM-DD HH24:MI:SS TZH:TZM')`:              "2024-05-01 10:00:00-05:30",
		`CAST(TIMESTAMP '2024-05-01 10:00:00.9' AS DATE)`:                                             "2024-05-01 10:00:00Z",
	} {
		rows, err := e.Query("APP", "SELECT "+expression+" FROM DUAL")
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got := show(rows); got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

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
		`SELECT id FROM orders WHERE id = 'x'`:                                 1722,
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
		`CREATE INDEX again ON orders (updated, id)`:                           1408,
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
		if got := code(t, e.Exec(sql)); got != want {
			if rows, err := e.Query("APP", sql); code(t, err) != want {
				t.Errorf("%s: ORA-%05d, %s %v, want ORA-%05d", sql, got, show(rows), err, want)
			}
		}
	}
}
