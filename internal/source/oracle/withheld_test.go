package oracle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// What PL/SQL and conversions raise over rows holds their values, whatever its
// code: dynamic SQL names an identifier that it took from a row.
func TestErrorsWithholdValues(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{FetchSize: 10})
	for code, class := range map[int]observer.Class{
		904: observer.ClassQuery, 942: observer.ClassQuery, 1031: observer.ClassQuery, 6550: observer.ClassQuery,
		1017: observer.ClassQuery, 28000: observer.ClassQuery, // of a database link
		12154: observer.ClassSettings, 20: observer.ClassResource, 28: observer.ClassKilled, 1555: observer.ClassRetry,
		1722: observer.ClassData, 20001: observer.ClassUnknown,
	} {
		for stage, name := range map[oratest.Stage]string{oratest.Before: "before", oratest.Fetching: "fetching"} {
			fault := oratest.Fail(code)
			fault.At, fault.Err.Text, fault.Err.Position = stage, sourcetest.Mark+" does not fit", 17
			trap := d.server.On(theRead, fault)
			err := sourcetest.Withheld(t, s, orders())
			trap.Release()
			sourcetest.Refusal(t, err, class, fmt.Sprintf("ORA-%05d", code), fmt.Sprintf("ORA-%05d: ", code), "/ORCLPDB1")
			switch class {
			case observer.ClassQuery:
				sourcetest.Refusal(t, err, class, fmt.Sprintf("ORA-%05d", code), "(at position 18); "+source.Sound)
			case observer.ClassData, observer.ClassUnknown:
				sourcetest.Refusal(t, err, class, fmt.Sprintf("ORA-%05d", code), source.Withheld)
			}
			if trap.Hits() == 0 {
				t.Errorf("%s: nobody met ORA-%05d", name, code)
			}
		}
	}
}

// The search for two rows with one key reads rows as well.
func TestSearchForEqualKeysWithholdsValues(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{})
	q := observer.Query{SQL: "SELECT status FROM orders", Key: []string{"status"}}
	d.server.On(oratest.SQL("ROWNUM"), oratest.Fault{Then: oratest.Refuse, Err: &wire.Error{Code: 904, Text: sourcetest.Mark}})
	_, err := s.Describe(t.Context(), q)
	sourcetest.Refusal(t, err, observer.ClassQuery, "ORA-00904", source.Sound)
	if strings.Contains(err.Error(), sourcetest.Mark) {
		t.Error(err)
	}
}

// What the database says of the statement alone is quoted, but for what code has
// raised that it ran even then, as a policy of row security does.
func TestErrorsNameWhatTheStatementLacks(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(3)
	s := d.open(oracle.Options{})
	probe := func(sql string) bool { return strings.Contains(sql, "1 = 0") }
	for text, quoted := range map[string]bool{
		"insufficient privileges on ORDERS": true,
		sourcetest.Mark + " is no name\nORA-06512: at \"APP.POLICY\", line 7\nORA-06512: at line 1": false,
	} {
		trap := d.server.On(probe, oratest.Fault{Then: oratest.Refuse, Err: &wire.Error{Code: 1031, Text: text}})
		err := sourcetest.Withheld(t, s, orders())
		trap.Release()
		sourcetest.Refusal(t, err, observer.ClassQuery, "ORA-01031")
		if strings.Contains(err.Error(), text) != quoted {
			t.Errorf("%v, quoted %t", err, !quoted)
		}
	}
}
