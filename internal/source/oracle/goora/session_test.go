package goora_test

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/oracle/goora"
	"github.com/observerd/observerd/test/kit/oratest"
)

func TestQuery(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	rows, err := db.QueryContext(t.Context(), "SELECT x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	if columns[1].Name() != "N" || columns[1].DatabaseTypeName() != "NUMBER" {
		t.Error(columns[1])
	}
	if nullable, ok := columns[1].Nullable(); !nullable || !ok {
		t.Error("not nullable")
	}
	var text, number any
	if !rows.Next() || rows.Scan(&text, &number) != nil || text != "SELECT x" || number != "12345678901234567890123456789012345678" {
		t.Errorf("%v %v %v", text, number, rows.Err())
	}
	if rows.Next() || rows.Err() != nil {
		t.Error("more rows, or", rows.Err())
	}
}

func TestManyRows(t *testing.T) {
	s := start(t)
	at := target(s)
	for _, size := range []int{1, 9, 10, 11, 25, 1 << 20} {
		at.FetchSize = size
		db := open(t, at)
		for _, query := range []string{"SELECT ROWS 0", "SELECT ROWS 1", "SELECT ROWS 10", "SELECT ROWS 65", "SELECT LOBS 0", "SELECT LOBS 10", "SELECT LOBS 25"} {
			n, err := read(t.Context(), db, query)
			if want := query[len("SELECT ROWS "):]; err != nil || strconv.Itoa(n) != want {
				t.Errorf("%s by %d: %d rows, %v", query, size, n, err)
			}
		}
	}
}

func TestFetchSizeIsUsed(t *testing.T) {
	s := start(t)
	at := target(s)
	at.FetchSize = 25 // With which the driver would choose another.
	db := open(t, at)
	if n, err := read(t.Context(), db, "SELECT ROWS 260"); n != 260 || err != nil {
		t.Error(n, err)
	}
	if got := s.Fetches(); got != 10 {
		t.Errorf("%d fetches", got)
	}
}

func TestSessionIsSetUpOnce(t *testing.T) {
	s := start(t)
	at := target(s)
	at.Action, at.Identifier = strings.Repeat("é", 40), "node-'1"
	db := open(t, at)
	for range 3 {
		right(t, db)
	}
	var setup []string
	for _, r := range s.Statements() {
		if !strings.HasPrefix(r.SQL, "SELECT") {
			setup = append(setup, r.SQL)
		}
	}
	want := "BEGIN DBMS_APPLICATION_INFO.SET_MODULE('observerd','" + strings.Repeat("é", 16) + "'); DBMS_SESSION.SET_IDENTIFIER('node-.1'); END;"
	// All that may show in a text of ours: what a logon trigger sets comes before it.
	forms := "ALTER SESSION SET TIME_ZONE='+00:00' NLS_CALENDAR=GREGORIAN NLS_NUMERIC_CHARACTERS='.,' NLS_SORT=BINARY NLS_COMP=BINARY" +
		" NLS_DATE_FORMAT='YYYY-MM-DD HH24:MI:SS' NLS_TIMESTAMP_FORMAT='YYYY-MM-DD HH24:MI:SS.FF9' NLS_TIMESTAMP_TZ_FORMAT='YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"
	if len(setup) != 2 || setup[0] != forms || setup[1] != want {
		t.Errorf("%q", setup)
	}
	if s.Logons() != 1 {
		t.Error(s.Logons(), "logons")
	}
}

func TestIntroductionIsOptional(t *testing.T) {
	s := start(t)
	trap := s.On(oratest.SQL("SET_MODULE"), oratest.Fail(6550))
	connector, err := goora.Open(target(s))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	right(t, db)
	if w := connector.Warning(); w == nil || !strings.Contains(w.Error(), "ORA-06550") {
		t.Fatal("no warning")
	}
	trap.Release()
	db.SetMaxIdleConns(-1)
	db.SetMaxIdleConns(1)
	right(t, db)
	if err := connector.Warning(); err != nil {
		t.Error(err)
	}
}

func TestSetupFails(t *testing.T) {
	s := start(t)
	s.On(oratest.SQL("ALTER SESSION"), oratest.Fail(1031))
	_, err := ask(t.Context(), open(t, target(s)), "SELECT 1")
	if fault := client.Classify(err); fault == nil || fault.Code != "ORA-01031" {
		t.Error(err)
	}
	if !eventually(func() bool { return s.Open() == 0 }) {
		t.Error("a failed logon left its socket open")
	}
}

// eventually waits until a condition holds, and reports whether it did.
func eventually(holds func() bool) bool {
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}

func TestRefusals(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	_, err := ask(t.Context(), db, "SELECT x FROM MISSING")
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != 942 || refused.Position != 15 {
		t.Errorf("%v", err)
	}
	right(t, db)
	if s.Logons() != 1 {
		t.Error("a clean refusal cost the connection")
	}
}

// Codes after which the driver would go on with the connection.
func TestRefusalsThatSpoil(t *testing.T) {
	for _, code := range []int{600, 1000, 1001, 1013, 1041, 1092, 2396, 2399, 3106, 3113, 3120, 3137, 3146, 7445, 12570, 25408, 20001} {
		s := start(t)
		db := open(t, target(s))
		trap := s.On(oratest.SQL("bad"), oratest.Fail(code))
		_, err := ask(t.Context(), db, "SELECT bad")
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("ORA-%05d: %v", code, err)
		}
		right(t, db)
		if s.Logons() != 2 || trap.Hits() != 1 {
			t.Errorf("ORA-%05d: %d logons, %d executions", code, s.Logons(), trap.Hits())
		}
	}
}

func TestUnknownTypes(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	_, err := read(t.Context(), db, "SELECT JSON")
	if !errors.Is(err, client.ErrType) {
		t.Error(err)
	}
	right(t, db)
	if s.Logons() != 2 {
		t.Error(s.Logons(), "logons")
	}
}

func TestBinds(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	rows, err := db.QueryContext(t.Context(), "SELECT :1, :2, :3", "a'b", int64(7), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Error(err)
	}
	all := s.Statements()
	if got := all[len(all)-1].Binds; len(got) != 3 || got[0] != "a'b" || got[1] != "7" || got[2] != nil {
		t.Errorf("%q", got)
	}
	for _, arg := range []any{time.Now(), sql.NullTime{Time: time.Now(), Valid: true}, sql.Named("a", 1)} {
		if _, err := db.ExecContext(t.Context(), "SELECT :1", arg); err == nil || !strings.Contains(err.Error(), "bind") {
			t.Errorf("%T: %v", arg, err)
		}
	}
}

func TestTransactionForReading(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var text, number string
	if err := tx.QueryRowContext(t.Context(), "SELECT in").Scan(&text, &number); err != nil || text != "SELECT in" {
		t.Error(text, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if executed(s, "SET TRANSACTION READ ONLY") != 1 || s.Logons() != 1 {
		t.Error(s.Statements())
	}
	if _, err := db.BeginTx(t.Context(), nil); err == nil {
		t.Error("a transaction for writing was begun")
	}
	right(t, db)
}
