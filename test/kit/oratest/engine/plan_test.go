package engine

import (
	"strings"
	"testing"
)

func TestPlans(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	exec(t, e,
		"CREATE TABLE loose (id NUMBER PRIMARY KEY, ts DATE, zoned TIMESTAMP(6) WITH TIME ZONE, name CHAR(4))",
		"CREATE INDEX loose_by_ts ON loose (ts, id)", "CREATE INDEX loose_by_zone ON loose (zoned)", "CREATE INDEX loose_by_name ON loose (name)",
		"CREATE TABLE bare (ts DATE)", "CREATE INDEX bare_by_ts ON bare (ts)",
		"CREATE VIEW recent AS SELECT id AS order_id, updated AS at FROM orders WHERE status = 'open'")
	const bound = "TO_TIMESTAMP(:1, 'YYYY-MM-DD HH24:MI:SS.FF9')"
	for sql, want := range map[string]string{
		"SELECT id FROM orders WHERE updated >= " + bound + " ORDER BY updated, id":                  "RANGE SCAN ORDERS_BY_TIME",
		`SELECT q."ID" FROM "APP"."ORDERS" q WHERE q."UPDATED" < ` + bound + ` ORDER BY q."UPDATED"`: "RANGE SCAN ORDERS_BY_TIME",
		"SELECT * FROM (SELECT id FROM orders ORDER BY updated, id) WHERE ROWNUM <= 5":               "FULL SCAN ORDERS_BY_TIME",
		"SELECT q.order_id FROM (SELECT * FROM recent) q WHERE q.at >= " + bound + " ORDER BY q.at":  "RANGE SCAN ORDERS_BY_TIME",
		"SELECT id FROM orders WHERE id = 1":                                                         "UNIQUE SCAN SYS_C",
		"SELECT id FROM loose WHERE ts >= TO_DATE(:1, 'YYYY-MM-DD') ORDER BY ts, id":                 "RANGE SCAN LOOSE_BY_TS",
		"SELECT id FROM loose WHERE ts IS NOT NULL ORDER BY ts":                                      "FULL SCAN LOOSE_BY_TS",
		"SELECT id FROM loose ORDER BY ts, id":                                                       "FULL SCAN LOOSE_BY_TS",
		"SELECT id FROM loose WHERE zoned >= SYSTIMESTAMP ORDER BY zoned":                            "RANGE SCAN LOOSE_BY_ZONE",
		"SELECT id FROM loose WHERE name = 'ab'":                                                     "RANGE SCAN LOOSE_BY_NAME",
		"SELECT id FROM loose WHERE ts IS NULL":                                                      "RANGE SCAN LOOSE_BY_TS",
		"SELECT ts FROM bare WHERE ts IS NULL":                                                       "ACCESS FULL BARE",
		// What keeps an index from serving.
		"SELECT id FROM orders WHERE TO_CHAR(id) = '1'":                           "ACCESS FULL ORDERS",
		"SELECT id FROM orders ORDER BY TO_CHAR(updated, 'YYYY')":                 "SORT ORDER BY|ACCESS FULL ORDERS",
		"SELECT TO_CHAR(updated, 'YYYY') AS updated FROM orders ORDER BY updated": "SORT ORDER BY|ACCESS FULL ORDERS",
		"SELECT id FROM orders WHERE updated >= " + bound + " ORDER BY id":        "SORT ORDER BY|RANGE SCAN ORDERS_BY_TIME",
		"SELECT id FROM orders ORDER BY updated DESC, id DESC":                    "SORT ORDER BY|ACCESS FULL ORDERS",
		"SELECT ts FROM bare ORDER BY ts":                                         "SORT ORDER BY|ACCESS FULL BARE",
	} {
		plan, err := e.Plan(sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for _, part := range strings.Split(want, "|") {
			if !strings.Contains(plan, part) {
				t.Errorf("%s:\n%s\nwant %s", sql, plan, part)
			}
		}
		if strings.Contains(plan, "SORT") != strings.Contains(want, "SORT") {
			t.Errorf("%s:\n%s\nwant %s", sql, plan, want)
		}
	}
}

// Oracle 11g knows neither FETCH FIRST nor long names.
func TestOldVersion(t *testing.T) {
	t.Parallel()
	old, recent := start(t, 11), start(t, 12)
	for sql, want := range map[string][2]int{
		"SELECT 1 FROM dual FETCH FIRST 1 ROWS ONLY":                              {933, 0},
		"SELECT 1 AS abcdefghijklmnopqrstuvwxyz01234 FROM dual":                   {972, 0},
		`SELECT 1 AS "ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ" FROM dual`:                                {972, 0},
		"SELECT 1 FROM dual;":                                                     {911, 933},
		"CREATE TABLE t (id NUMBER, CONSTRAINT p PRIMARY KEY (id))":               {0, 0},
		"GRANT READ ON t TO app":                                                  {990, 0},
		"SELECT * FROM (SELECT DUMMY FROM dual ORDER BY DUMMY) WHERE ROWNUM <= 1": {0, 0},
	} {
		// The table comes first, whatever the order of the map.
		for i, e := range []*Engine{old, recent} {
			if strings.HasPrefix(sql, "GRANT") {
				_ = e.Exec("CREATE TABLE t (id NUMBER)")
			}
			err := e.Exec(sql)
			if got := code(t, err); got != want[i] && got != 955 {
				t.Errorf("version %d: %s: %v, want ORA-%05d", e.options.Version, sql, err, want[i])
			}
		}
	}
}
