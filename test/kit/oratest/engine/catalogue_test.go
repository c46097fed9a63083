package engine

import (
	"math/big"
	"testing"
	"time"
)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	exec(t, e,
		`CREATE TABLE "Odd Name" (id NUMBER(19), n NUMBER, i INTEGER, f FLOAT, v VARCHAR2(10 CHAR), nv NVARCHAR2(5), d DATE NOT NULL,
			t TIMESTAMP, t3 TIMESTAMP(3), z TIMESTAMP WITH TIME ZONE, l TIMESTAMP(9) WITH LOCAL TIME ZONE, r RAW(16), c CLOB, b BINARY_DOUBLE,
			CONSTRAINT odd_pk PRIMARY KEY (id, n), CONSTRAINT odd_uk UNIQUE (v))`,
		`CREATE INDEX odd_by_zone ON "Odd Name" (z, id)`, `CREATE INDEX odd_down ON "Odd Name" (d DESC)`,
		"CREATE VIEW open_orders AS SELECT id AS no, status AS st FROM orders WHERE status = 'open'",
		`CREATE USER reader IDENTIFIED BY "pw"`, "GRANT SELECT ON open_orders TO reader", "GRANT CREATE SESSION, CREATE SYNONYM TO reader",
		"CREATE SYNONYM o FOR orders", "CREATE PUBLIC SYNONYM po FOR app.open_orders",
		"BEGIN DBMS_STATS.GATHER_TABLE_STATS(ownname => 'APP', tabname => 'ORDERS'); END;")
	app, reader := connect(t, e, "APP"), connect(t, e, "READER")
	app.must("ID,NUMBER,22,19,0,N,0,1;N,NUMBER,22,NULL,NULL,N,0,2;I,NUMBER,22,NULL,0,Y,0,3;F,FLOAT,22,126,NULL,Y,0,4;"+
		"V,VARCHAR2,40,NULL,NULL,Y,10,5;NV,NVARCHAR2,10,NULL,NULL,Y,5,6;D,DATE,7,NULL,NULL,N,0,7;T,TIMESTAMP(6),11,NULL,6,Y,0,8;"+
		"T3,TIMESTAMP(3),11,NULL,3,Y,0,9;Z,TIMESTAMP(6) WITH TIME ZONE,13,NULL,6,Y,0,10;L,TIMESTAMP(9) WITH LOCAL TIME ZONE,11,NULL,9,Y,0,11;"+
		"R,RAW,16,NULL,NULL,Y,0,12;C,CLOB,4000,NULL,NULL,Y,0,13;B,BINARY_DOUBLE,8,NULL,NULL,Y,0,14",
		"SELECT COLUMN_NAME, DATA_TYPE, DATA_LENGTH, DATA_PRECISION, DATA_SCALE, NULLABLE, CHAR_LENGTH, COLUMN_ID FROM ALL_TAB_COLUMNS WHERE OWNER = :1 AND TABLE_NAME = :2 ORDER BY COLUMN_ID",
		"APP", "Odd Name")
	app.refused(904, "SELECT HIDDEN_COLUMN FROM ALL_TAB_COLUMNS")
	app.must("SYS_NC00015$,YES;SYS_NC00016$,YES", `SELECT COLUMN_NAME, HIDDEN_COLUMN FROM ALL_TAB_COLS WHERE TABLE_NAME = 'Odd Name' AND HIDDEN_COLUMN = 'YES' ORDER BY COLUMN_NAME`)
	app.must("ODD_BY_ZONE,NONUNIQUE,FUNCTION-BASED NORMAL;ODD_DOWN,NONUNIQUE,FUNCTION-BASED NORMAL;ODD_PK,UNIQUE,NORMAL;ODD_UK,UNIQUE,NORMAL",
		"SELECT INDEX_NAME, UNIQUENESS, INDEX_TYPE FROM ALL_INDEXES WHERE TABLE_OWNER = 'APP' AND TABLE_NAME = 'Odd Name' ORDER BY INDEX_NAME")
	app.must("ODD_BY_ZONE,SYS_NC00015$,1,ASC;ODD_BY_ZONE,ID,2,ASC;ODD_DOWN,SYS_NC00016$,1,DESC;ODD_PK,ID,1,ASC;ODD_PK,N,2,ASC;ODD_UK,V,1,ASC",
		"SELECT c.INDEX_NAME, c.COLUMN_NAME, c.COLUMN_POSITION, c.DESCEND FROM ALL_IND_COLUMNS c WHERE c.TABLE_NAME = 'Odd Name' ORDER BY c.INDEX_NAME, c.COLUMN_POSITION")
	app.must("ORDERS,3;Odd Name,NULL", "SELECT TABLE_NAME, NUM_ROWS FROM ALL_TABLES WHERE OWNER = 'APP' ORDER BY TABLE_NAME")
	app.must("NO,NUMBER,N;ST,VARCHAR2,Y", "SELECT COLUMN_NAME, DATA_TYPE, NULLABLE FROM ALL_TAB_COLUMNS WHERE TABLE_NAME = 'OPEN_ORDERS' ORDER BY COLUMN_ID")
	app.must("1", "SELECT id FROM o WHERE ROWNUM = 1")
	// Who was granted a view sees it, and not what it is made of.
	reader.must("OPEN_ORDERS,VIEW", "SELECT OBJECT_NAME, OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = 'APP'")
	reader.must("", "SELECT TABLE_NAME FROM ALL_TABLES WHERE OWNER = 'APP'")
	reader.must("1", "SELECT no FROM po")
	reader.must("1", "SELECT q.no FROM app.open_orders q")
	reader.refused(942, "SELECT id FROM app.orders")
	reader.refused(942, "DELETE FROM app.orders")
	reader.refused(1031, "DELETE FROM app.open_orders")
	reader.refused(1031, "CREATE TABLE t (id NUMBER)")
	reader.must("APP,OPEN_ORDERS", "SELECT TABLE_OWNER, TABLE_NAME FROM ALL_SYNONYMS WHERE OWNER = 'PUBLIC' AND SYNONYM_NAME = 'PO'")
	reader.must("AL32UTF8", "SELECT VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER = 'NLS_CHARACTERSET'")
}

func TestRights(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	exec(t, e, `CREATE USER reader IDENTIFIED BY "pw" ACCOUNT UNLOCK`)
	reader := connect(t, e, "READER")
	reader.refused(942, "SELECT COUNT(*) FROM app.orders")
	exec(t, e, "GRANT SELECT ON orders TO reader")
	reader.must("3", "SELECT COUNT(*) FROM app.orders")
	exec(t, e, "REVOKE SELECT ON orders FROM reader")
	reader.refused(942, "SELECT COUNT(*) FROM app.orders")
	exec(t, e, "GRANT INSERT ON orders TO reader")
	reader.refused(1031, "SELECT COUNT(*) FROM app.orders")
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	c := connect(t, e, "APP")
	exec(t, e, "ALTER TABLE orders ADD note VARCHAR2(5)")
	c.must("1,NULL;2,NULL;3,NULL", "SELECT id, note FROM orders ORDER BY id")
	exec(t, e, "UPDATE orders SET note = 'x' WHERE id = 2", "ALTER TABLE orders DROP COLUMN status", "ALTER TABLE orders RENAME COLUMN note TO remark")
	c.must("2,x", "SELECT id, remark FROM orders WHERE remark IS NOT NULL")
	c.refused(904, "SELECT status FROM orders")
	c.refused(1430, "ALTER TABLE orders ADD id NUMBER")
	exec(t, e, "CREATE TABLE copy AS SELECT id, updated FROM orders", "INSERT INTO copy SELECT id + 10, updated FROM orders")
	c.must("6", "SELECT COUNT(*) FROM copy")
	c.refused(1, "INSERT INTO orders (id, updated) SELECT 1, SYSDATE FROM dual")
	c.refused(1452, "CREATE UNIQUE INDEX twice ON copy (updated)")
	exec(t, e, "ALTER TABLE copy ADD CONSTRAINT copy_pk PRIMARY KEY (id)")
	c.refused(1, "INSERT INTO copy VALUES (11, SYSDATE)")
	exec(t, e, "DELETE FROM copy", "DROP TABLE orders")
	c.must("0", "SELECT COUNT(*) FROM copy")
	c.refused(942, "SELECT id FROM orders")
	// A definition commits what came before it.
	tx := e.Begin()
	for _, sql := range []string{"INSERT INTO copy VALUES (1, SYSDATE)", "CREATE TABLE other (id NUMBER)"} {
		if err := tx.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	tx.Rollback()
	c.must("1", "SELECT COUNT(*) FROM copy")
}

func TestSessions(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	c := connect(t, e, "APP")
	// The format of a session that has set none has names in it.
	c.refused(1821, "SELECT TO_CHAR(SYSDATE) FROM dual")
	c.must("", "ALTER SESSION SET TIME_ZONE='America/New_York' NLS_DATE_FORMAT='YYYY-MM-DD HH24:MI:SS' NLS_SORT=BINARY")
	c.must("2024-05-01 12:00:00", "SELECT TO_CHAR(SYSDATE) FROM dual")
	c.refused(1882, "ALTER SESSION SET TIME_ZONE='Nowhere/City'")
	c.refused(1878, "SELECT TO_TIMESTAMP_TZ('2024-03-10 02:30:00', 'YYYY-MM-DD HH24:MI:SS') FROM dual")
	c.must("", "BEGIN DBMS_APPLICATION_INFO.SET_MODULE(module_name => :m, action_name => :a); DBMS_SESSION.SET_IDENTIFIER(:m); END;", "observerd", "poll")
	c.must("observerd,poll,observerd", "SELECT SYS_CONTEXT('USERENV','MODULE'), SYS_CONTEXT('USERENV','ACTION'), SYS_CONTEXT('USERENV','CLIENT_IDENTIFIER') FROM dual")
	if c.session.Module != "observerd" || c.session.Settings["NLS_SORT"] != "BINARY" {
		t.Errorf("the session is %+v", c.session)
	}
	e.RevokePackage("DBMS_SESSION")
	c.refused(6550, "BEGIN DBMS_SESSION.SET_IDENTIFIER('x'); END;")
	c.refused(1008, "SELECT :1 || :1 FROM dual", "a")
	c.refused(1036, "SELECT :1 FROM dual", "a", "b")
	c.must("aa", "SELECT :1 || :1 FROM dual", "a", "a")
	c.must("", `DECLARE n NUMBER := 2; shown NUMBER; BEGIN SELECT COUNT(*) INTO shown FROM dual WHERE 1 = 3 - n; n := 1 / shown; END;`)
	c.refused(1476, `DECLARE n NUMBER; BEGIN SELECT COUNT(*) INTO n FROM dual WHERE 1 = 0; n := 1 / n; END;`)
}

// Local times are converted with the rules of their zones.
func TestZones(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	exec(t, e, "CREATE TABLE z (id NUMBER, l TIMESTAMP WITH LOCAL TIME ZONE, z TIMESTAMP WITH TIME ZONE)",
		"ALTER SESSION SET TIME_ZONE='UTC'",
		"INSERT INTO z VALUES (1, TIMESTAMP '2024-10-27 02:30:00 +02:00', TIMESTAMP '2024-10-27 02:30:00 +02:00')",
		"INSERT INTO z VALUES (2, TIMESTAMP '2024-10-27 02:30:00 +01:00', TIMESTAMP '2024-10-27 02:30:00 +01:00')")
	c := connect(t, e, "APP")
	c.must("", "ALTER SESSION SET TIME_ZONE='Europe/Berlin'")
	c.must("1,02:30,00:30;2,02:30,01:30", "SELECT id, TO_CHAR(l, 'HH24:MI'), TO_CHAR(SYS_EXTRACT_UTC(l), 'HH24:MI') FROM z ORDER BY l")
	c.must("2", "SELECT id FROM z WHERE z > TO_TIMESTAMP_TZ('2024-10-27 00:30:00 +00:00', 'YYYY-MM-DD HH24:MI:SS TZH:TZM')")
	c.must("1,2024-10-27 02:30:00+02:00", "SELECT id, z FROM z WHERE ROWNUM = 1 AND id = 1")
}

func TestBulkInsert(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	exec(t, e, "CREATE TABLE big (id NUMBER(19) PRIMARY KEY, name VARCHAR2(20), ts TIMESTAMP(6) NOT NULL)", "CREATE INDEX big_by_ts ON big (ts, id)")
	const n = 20_000
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	err := e.BulkInsert("BIG", func(yield func([]any) bool) {
		for i := range n {
			// Not in the order of the index.
			if !yield([]any{i, "row", at.Add(time.Duration(i*7919%n) * time.Second)}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, e, "APP")
	c.must("20000", "SELECT NUM_ROWS FROM ALL_TABLES WHERE TABLE_NAME = 'BIG'")
	// Rows that come one by one are merged into the order.
	for i := range 3000 {
		exec(t, e, "INSERT INTO big VALUES ("+big.NewInt(int64(n+i)).String()+", 'late', TIMESTAMP '2024-01-01 01:00:00')")
	}
	rows, err := e.Query("APP", "SELECT ts FROM big ORDER BY ts, id")
	if err != nil || len(rows) != n+3000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i][0].(time.Time).Before(rows[i-1][0].(time.Time)) {
			t.Fatalf("row %d is not in order", i)
		}
	}
	c.must("2", "SELECT COUNT(*) FROM (SELECT id FROM big WHERE ts >= TIMESTAMP '2024-01-01 00:00:10' ORDER BY ts, id) WHERE ROWNUM <= 2")
	c.must("3001", "SELECT COUNT(*) FROM big WHERE ts = TIMESTAMP '2024-01-01 01:00:00'")
}
