package oracle_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// fakeClock is that of a database's host.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

const eventsTable = "CREATE TABLE events (id NUMBER(10) PRIMARY KEY, at TIMESTAMP NOT NULL)"

func events() observer.Query {
	return observer.Query{Stream: "events", Table: "app.events", Key: []string{"id"}, Timestamp: "at"}
}

func horizon(t *testing.T, s *oracle.Source, q observer.Query) observer.Horizon {
	t.Helper()
	h, err := s.Horizon(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestTimestamps orders the same rows by each type that can, read by a node and
// a host in zones of their own.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tokyo := time.FixedZone("", 9*3600)
	clock := &fakeClock{at: time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)}
	d := emulate(t, engine.Options{Now: clock.now, OSZone: tokyo, Version: 12})
	d.exec("CREATE TABLE edges (id NUMBER(5) PRIMARY KEY, day DATE, wall TIMESTAMP(9), zone TIMESTAMP(9) WITH TIME ZONE, local TIMESTAMP(9) WITH LOCAL TIME ZONE)")
	for id, at := range []string{"2024-07-01 09:00:00", "2024-07-01 10:00:00", "2024-07-01 11:00:00", "2024-07-02 00:00:00"} {
		d.exec(fmt.Sprintf("INSERT INTO edges VALUES (%[1]d, TIMESTAMP '%[2]s', TIMESTAMP '%[2]s.000000001', TIMESTAMP '%[2]s +02:00', TIMESTAMP '%[2]s +02:00')", id+1, at))
	}
	d.exec("INSERT INTO edges VALUES (5, NULL, NULL, NULL, NULL)")
	s := d.open(oracle.Options{Location: berlin})
	for column, want := range map[string][3]string{
		"day":   {"2024-07-01 10:00:00", "2024-07-01T08:00:00Z", "2024-07-01 11:59:55"},
		"wall":  {"2024-07-01 10:00:00.000000001", "2024-07-01T08:00:00.000000001Z", "2024-07-01 11:59:55.000000000"},
		"zone":  {"2024-07-01 08:00:00.000000000Z", "2024-07-01T08:00:00Z", "2024-07-01 09:59:55.000000000Z"},
		"local": {"2024-07-01 08:00:00.000000000Z", "2024-07-01T08:00:00Z", "2024-07-01 09:59:55.000000000Z"},
	} {
		q := observer.Query{Table: "edges", Key: []string{"id"}, Timestamp: column, NullTimestamp: observer.NullSkip}
		rows := sourcetest.ReadAll(t, s, q, observer.Range{})
		if keysOf(rows) != "1 2 3 4" || rows[1].Cursor != want[0] || rows[1].Time.UTC().Format(time.RFC3339Nano) != want[1] {
			t.Fatalf("%s: rows = %+v, want %v", column, rows, want)
		}
		for in, keys := range map[observer.Range]string{
			{From: rows[1].Cursor}: "2 3 4", {From: rows[1].Cursor, Before: rows[3].Cursor}: "2 3", {Before: rows[1].Cursor}: "1", {From: rows[1].Cursor, Limit: 1}: "2",
		} {
			if got := keysOf(sourcetest.ReadAll(t, s, q, in)); got != keys {
				t.Errorf("%s, %+v: keys = %s, want %s", column, in, got, keys)
			}
		}
		q.NullTimestamp = observer.NullInclude
		if got := keysOf(sourcetest.ReadAll(t, s, q, observer.Range{From: rows[3].Cursor})); got != "4 5" {
			t.Errorf("%s: keys = %s, want the row without a timestamp last", column, got)
		}
		if h := horizon(t, s, q); h.Cursor != want[2] || h.Lag != 5*time.Second {
			t.Errorf("%s: horizon = %+v, want %s", column, h, want[2])
		}
		at, err := s.CursorAt(t.Context(), q, time.Date(2024, 7, 1, 8, 0, 0, 1, time.UTC))
		if got := keysOf(sourcetest.ReadAll(t, s, q, observer.Range{From: at, Before: rows[2].Cursor})); err != nil || got != map[bool]string{true: "2"}[column == "day" || column == "wall"] {
			t.Errorf("%s: from %s keys = %s, %v", column, at, got, err)
		}
	}
}

// The host is in another zone than the columns; both change their clocks.
func TestHorizonOverZones(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	clock := &fakeClock{at: time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)}
	d := emulate(t, engine.Options{Now: clock.now, OSZone: berlin})
	d.exec(eventsTable)
	s := d.open(oracle.Options{Location: berlin})
	if h := horizon(t, s, events()); !h.Exact || h.Cursor != "2024-07-01 11:59:55.000000000" || h.Lag != 5*time.Second || h.Clock != "2024-07-01 12:00:00.000000000" {
		t.Errorf("nothing open: %+v", h)
	}
	exec, commit := d.begin()
	exec("INSERT INTO events VALUES (1, CAST(SYSTIMESTAMP AS TIMESTAMP))")
	clock.set(clock.now().Add(10 * time.Minute))
	if h := horizon(t, s, events()); !h.Exact || h.Cursor != "2024-07-01 11:59:55.000000000" || h.Lag != 10*time.Minute+5*time.Second {
		t.Errorf("beside a transaction: %+v", h)
	}
	q := events()
	q.Overlap = time.Hour
	if h := horizon(t, s, q); !h.Exact || h.Cursor != "2024-07-01 11:10:00.000000000" {
		t.Errorf("with an overlap: %+v", h)
	}
	commit()
	if h := horizon(t, s, events()); h.Cursor != "2024-07-01 12:09:55.000000000" {
		t.Errorf("after the commit: %+v", h)
	}
	// Half an hour before the clocks go back, rows will yet be written that
	// read 02:00.
	clock.set(time.Date(2024, 10, 27, 0, 30, 0, 0, time.UTC))
	if h := horizon(t, s, events()); h.Cursor != "2024-10-27 02:00:00.000000000" {
		t.Errorf("before the fold: %+v", h)
	}
}

// What each grant is good for, without a cluster and within one.
func TestGrants(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		instances int
		grants    []string
		exact     bool
		warning   string
		identity  string
	}{
		"nothing":                  {1, nil, false, "SYS.GV_$TRANSACTION", "name:ORATEST"},
		"all instances":            {1, []string{"GV_$TRANSACTION", "V_$DATABASE"}, true, "", "dbid:2912345678/925702"},
		"all of a cluster":         {2, []string{"GV_$TRANSACTION"}, true, "SYS.V_$DATABASE", "name:ORATEST"},
		"one instance":             {1, []string{"V_$TRANSACTION"}, false, "SYS.V_$INSTANCE", "name:ORATEST"},
		"the only instance":        {1, []string{"V_$TRANSACTION", "V_$INSTANCE"}, true, "SYS.V_$DATABASE", "name:ORATEST"},
		"one of several":           {2, []string{"V_$TRANSACTION", "V_$INSTANCE"}, false, "SYS.V_$INSTANCE", "name:ORATEST"},
		"the identity and no more": {1, []string{"V_$DATABASE"}, false, "SYS.GV_$TRANSACTION", "dbid:2912345678/925702"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := emulate(t, engine.Options{Instances: test.instances}, "reader")
			d.exec(eventsTable, `CREATE USER reader IDENTIFIED BY "x"`, "GRANT CREATE SESSION TO reader", "GRANT READ ON events TO reader")
			for _, view := range test.grants {
				d.exec("GRANT SELECT ON SYS." + view + " TO reader")
			}
			s := d.open(oracle.Options{URL: d.url("reader")})
			h := horizon(t, s, events())
			if h.Exact != test.exact || !h.Exact && h.Lag != time.Minute {
				t.Errorf("horizon = %+v, want exact %t", h, test.exact)
			}
			got, err := s.Describe(t.Context(), events())
			if err != nil || got.HorizonExact != test.exact || !strings.Contains(strings.Join(got.Warnings, " "), test.warning) || test.warning == "" && len(got.Warnings) > 0 {
				t.Errorf("description = %+v, %v, want a warning of %s", got, err, test.warning)
			}
			if id, err := s.Identity(t.Context()); err != nil || !strings.HasPrefix(id, test.identity) {
				t.Errorf("identity = %s, %v, want %s", id, err, test.identity)
			}
		})
	}
}

// A grant that is taken away is missed at once, in the same call.
func TestGrantRevoked(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}, "reader")
	d.exec(eventsTable, `CREATE USER reader IDENTIFIED BY "x"`, "GRANT CREATE SESSION TO reader", "GRANT SELECT ON events TO reader",
		"GRANT SELECT ON SYS.GV_$TRANSACTION TO reader", "GRANT SELECT ON SYS.V_$DATABASE TO reader")
	s := d.open(oracle.Options{URL: d.url("reader")})
	before, err := s.Identity(t.Context())
	if h := horizon(t, s, events()); err != nil || !h.Exact {
		t.Fatalf("horizon = %+v, identity %s, %v", h, before, err)
	}
	d.exec("REVOKE SELECT ON SYS.GV_$TRANSACTION FROM reader", "REVOKE SELECT ON SYS.V_$DATABASE FROM reader")
	if h := horizon(t, s, events()); h.Exact {
		t.Errorf("horizon = %+v without the grant", h)
	}
	if after, err := s.Identity(t.Context()); err != nil || after == before || !strings.HasPrefix(after, "name:") {
		t.Errorf("identity = %s, %v without the grant", after, err)
	}
}

// A view that is granted, and shows nothing of what goes on.
func TestBlindGrant(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	d.exec(eventsTable)
	tested := 0
	d.seen.instead(func(s wire.Statement) (bool, error) {
		if !strings.Contains(s.SQL, "LOCAL_TRANSACTION_ID(TRUE)") {
			return false, nil
		}
		tested++
		return true, &wire.Error{Code: 1476, Text: "divisor is equal to zero"}
	})
	s := d.open(oracle.Options{PoolSize: 1})
	if h := horizon(t, s, events()); h.Exact || h.Lag != time.Minute || tested != 1 {
		t.Errorf("horizon = %+v after %d tests of the view", h, tested)
	}
	got, err := s.Describe(t.Context(), events())
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "this very session") || tested != 1 {
		t.Errorf("description = %+v, %v", got, err)
	}
}

// A standby, a copy and a restored database are not what was there before.
func TestOtherDatabases(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	d.exec(eventsTable)
	s := d.open(oracle.Options{})
	first, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	restored := d.engine.Database()
	restored.ResetlogsChange++
	d.engine.SetDatabase(restored)
	if again, err := s.Identity(t.Context()); err != nil || again == first || !strings.HasPrefix(again, "dbid:") {
		t.Errorf("identity = %s, then %s, %v", first, again, err)
	}
	if got, err := s.Describe(t.Context(), events()); err != nil || strings.Contains(strings.Join(got.Warnings, " "), "standby") {
		t.Errorf("a primary is described as %+v, %v", got, err)
	}
	restored.Role = "PHYSICAL STANDBY"
	d.engine.SetDatabase(restored)
	if h := horizon(t, s, events()); h.Exact {
		t.Errorf("horizon of a standby = %+v", h)
	}
	if got, err := s.Describe(t.Context(), events()); err != nil || !strings.Contains(strings.Join(got.Warnings, " "), "standby") {
		t.Errorf("a standby is described as %+v, %v", got, err)
	}
}

// TestClockBackUnderATransaction: what was open when the clock went back may
// have written at any time since.
func TestClockBackUnderATransaction(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)}
	d := emulate(t, engine.Options{Now: clock.now, OSZone: time.UTC})
	d.exec(eventsTable)
	s := d.open(oracle.Options{})
	exec, commit := d.begin()
	exec("INSERT INTO events VALUES (1, CAST(SYSTIMESTAMP AS TIMESTAMP))")
	clock.set(clock.now().Add(-time.Minute))
	if h := horizon(t, s, events()); h.Cursor != "" || !h.Now.Equal(clock.now()) {
		t.Errorf("with the transaction: %+v", h)
	}
	commit()
	if h := horizon(t, s, events()); h.Cursor != "2024-07-01 09:58:55.000000000" {
		t.Errorf("without it: %+v", h)
	}
}

// A transaction is noted by the whole second in which it began: none that begins
// after a look may lower the horizon below what that look has settled.
func TestHorizonDoesNotGoBackWithinASecond(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2024, 7, 1, 10, 0, 9, 900_000_000, time.UTC)}
	d := emulate(t, engine.Options{Now: clock.now, OSZone: time.UTC})
	d.exec(eventsTable)
	s := d.open(oracle.Options{})
	settled := horizon(t, s, events())
	clock.set(clock.now().Add(50 * time.Millisecond))
	exec, commit := d.begin()
	defer commit()
	exec("INSERT INTO events VALUES (1, CAST(SYSTIMESTAMP AS TIMESTAMP))")
	clock.set(clock.now().Add(30 * time.Second))
	if h := horizon(t, s, events()); s.Compare(h.Cursor, settled.Cursor) < 0 {
		t.Errorf("%s after %s", h.Cursor, settled.Cursor)
	}
}
