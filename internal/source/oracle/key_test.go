package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// Each type that may be gone on from is read from each of its values on.
func TestReadByKey(t *testing.T) {
	t.Parallel()
	for column, values := range map[string]string{
		"NUMBER":       "-1.5,0,0.5,.25,9007199254740993,9007199254740992,12345678901234567890123456789012345678,-1E-30,1E60",
		"NUMBER(19)":   "-5,0,3,10",
		"VARCHAR2(20)": "'a','A','a ','a  ','b','it''s','10','9','ü','日本','~',':1','a/b%'",
		"CHAR(5)":      "'a','a b','a' || CHR(9),'b','it''s','12345'",
		"DATE":         "DATE '2024-02-29',TO_DATE('2024-02-29 23:59:59','YYYY-MM-DD HH24:MI:SS'),TO_DATE('-0044-03-15','SYYYY-MM-DD'),DATE '9999-12-31'",
		"TIMESTAMP(9)": "TIMESTAMP '2024-10-27 02:30:00.000000001',TIMESTAMP '2024-10-27 02:30:00',TIMESTAMP '2024-10-27 02:30:00.5'",
		"RAW(4)":       "HEXTORAW('00'),HEXTORAW('0001'),HEXTORAW('20'),HEXTORAW('FFFFFFFF')",
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			d := emulate(t, engine.Options{})
			d.exec("CREATE TABLE t (k "+column+" NOT NULL, n NUMBER NOT NULL, at DATE)", "CREATE INDEX t_key ON t (k, n)")
			all := strings.Split(values, ",")
			if column == "DATE" {
				all = []string{all[0], strings.Join(all[1:3], ","), strings.Join(all[3:5], ","), all[5]}
			}
			for n, value := range all {
				d.exec(fmt.Sprintf("INSERT INTO t VALUES (%s, %d, DATE '2024-05-01')", value, n), fmt.Sprintf("INSERT INTO t VALUES (%s, %d, DATE '2024-05-01')", value, -n-1))
			}
			keys := sourcetest.ReadByKey(t, d.open(oracle.Options{}), observer.Query{Table: "t", Key: []string{"k", "n"}})
			if len(keys) != 2*len(all) || slices.Contains(keys, "") {
				t.Errorf("keys = %q, want %d", keys, 2*len(all))
			}
		})
	}
}

func TestKeyOrder(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	s := d.open(oracle.Options{})
	for n, test := range []struct {
		columns, options, index string
		want                    bool
	}{
		{"k NUMBER PRIMARY KEY, n NUMBER", "", "", true},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (k, n)", true},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (n, k)", false},
		{"k NUMBER, n NUMBER", "", "UNIQUE INDEX i ON t (k)", false},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (k DESC)", false},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (k) REVERSE", false},
		{"k NUMBER NOT NULL, n NUMBER", "", "BITMAP INDEX i ON t (k)", false},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (k) INVISIBLE", false},
		{"k NUMBER NOT NULL, n NUMBER", "", "INDEX i ON t (k) UNUSABLE", false},
		{"k NUMBER NOT NULL, n NUMBER", "PARTITION BY HASH (k) PARTITIONS 4", "INDEX i ON t (k) LOCAL", false},
		{"k NUMBER NOT NULL, n NUMBER", "PARTITION BY HASH (k) PARTITIONS 4", "INDEX i ON t (k)", true},
		{"k NUMBER NOT NULL, n NUMBER", "", `INDEX "it's */" ON t (k)`, false},
		{"k NUMBER PRIMARY KEY, n NUMBER", "ORGANIZATION INDEX", "", true},
		{"k VARCHAR2(9) PRIMARY KEY, n NUMBER", "", "", true},
		{"k NVARCHAR2(9) PRIMARY KEY, n NUMBER", "", "", false},
		{"k NCHAR(9) PRIMARY KEY, n NUMBER", "", "", false},
		{"k BINARY_DOUBLE PRIMARY KEY, n NUMBER", "", "", false},
		{"k ROWID PRIMARY KEY, n NUMBER", "", "", false},
		{"k TIMESTAMP(6) WITH LOCAL TIME ZONE PRIMARY KEY, n NUMBER", "", "", false},
		{"k TIMESTAMP(6) WITH TIME ZONE NOT NULL, n NUMBER", "", "INDEX i ON t (k)", false},
	} {
		table := fmt.Sprintf("t%d", n)
		d.exec("CREATE TABLE " + table + " (" + test.columns + ") " + test.options)
		if test.index != "" {
			d.exec("CREATE " + strings.NewReplacer("INDEX i ", "INDEX i_"+table+" ", "ON t ", "ON "+table+" ").Replace(test.index))
		}
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: table, Key: []string{"k"}}); got != test.want {
			t.Errorf("%s %s %s: an index serves: %t", test.columns, test.options, test.index, got)
		}
	}
	d.exec("CREATE SYNONYM other FOR t0")
	if !sourcetest.OrdersByKey(t, s, observer.Query{Table: "other", Key: []string{"k"}}) {
		t.Error("behind a synonym, no index serves")
	}
}

// A text may come back as another where the database has no Unicode.
func TestKeyOrderNeedsUnicode(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{Charset: "WE8MSWIN1252"})
	d.exec("CREATE TABLE t (k VARCHAR2(9) PRIMARY KEY, n NUMBER NOT NULL UNIQUE)")
	s := d.open(oracle.Options{})
	for key, want := range map[string]bool{"k": false, "n": true} {
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: "t", Key: []string{key}}); got != want {
			t.Errorf("%s: an index serves: %t", key, got)
		}
	}
}

// A read that goes on begins in the index, and sorts nothing.
func TestPlanByKey(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	d.exec("CREATE TABLE t (a VARCHAR2(9) NOT NULL, b NUMBER NOT NULL, c CLOB, PRIMARY KEY (a, b))", "INSERT INTO t VALUES ('it''s :2', 1, 'x')")
	s := d.open(oracle.Options{})
	q := observer.Query{Stream: "t", Table: "t", Key: []string{"a", "b"}}
	for key, access := range map[string]string{"": "INDEX FULL SCAN", "it's :2/1": "INDEX RANGE SCAN"} {
		plan, err := s.Plan(t.Context(), q, observer.Range{ByKey: true, Key: key})
		if err != nil || plan.Sorts || !strings.Contains(plan.Text, access) {
			t.Errorf("from %q: %+v, %v", key, plan, err)
		}
	}
	for _, key := range []string{"a", "a/b", "a/1e5", "/1"} {
		if _, err := s.SQL(t.Context(), q, observer.Range{ByKey: true, Key: key}); observer.ClassOf(err) != observer.ClassQuery {
			t.Errorf("from %q: %v", key, err)
		}
	}
}

// Among rows of one timestamp a read goes on from keys that come back as they are.
func TestReadGoesOnAmongRowsOfOneTimestamp(t *testing.T) {
	t.Parallel()
	for charset, text := range map[string]bool{"AL32UTF8": true, "WE8MSWIN1252": false} {
		d := emulate(t, engine.Options{Charset: charset})
		d.exec("CREATE TABLE t (at DATE, k VARCHAR2(9), n NUMBER, w NVARCHAR2(9))", "CREATE VIEW v AS SELECT * FROM t")
		s := d.open(oracle.Options{})
		for key, want := range map[string]bool{"k": text, "n": true, "w": false} {
			for _, table := range []string{"t", "v"} {
				q := observer.Query{Table: table, Key: []string{key}, Timestamp: "at"}
				if got := sourcetest.TiedByKey(t, s, q); got != want {
					t.Errorf("%s: %s.%s: %t", charset, table, key, got)
				}
			}
		}
	}
}
