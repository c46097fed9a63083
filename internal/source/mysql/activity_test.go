package mysql

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// What takes a replica, a cluster or a night in October is checked on the
// arithmetic alone.
func TestActivityHorizon(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 10, 27, 0, 30, 0, 500, time.UTC) // 02:30 in Berlin, for the first time
	later := now.Add(time.Hour)                             // 02:30, for the second
	blind := func(a *activity) { a.fallBack("cannot see") }
	for name, test := range map[string]struct {
		now         time.Time
		change      func(*activity)
		overlap     time.Duration
		kind        timeKind
		want, clock string
		exact       bool
	}{
		"nothing open":  {now, nil, 0, timeUTC, "2024-10-27 00:29:59.000000", "2024-10-27 00:30:01.000000", true},
		"a transaction": {now, func(a *activity) { a.open(now.Add(-time.Minute), true) }, 0, timeUTC, "2024-10-27 00:28:59.000000", "2024-10-27 00:30:01.000000", true},
		"whole seconds": {now, func(a *activity) { a.grain = mysqlGrain }, 0, timeUTC, "2024-10-27 00:29:57.000000", "2024-10-27 00:30:01.000000", true},
		"a late start": {now.Add(time.Minute), func(a *activity) {
			a.grain = mysqlGrain
			a.open(now.Add(-mysqlGrain), true)
		}, 0, timeUTC, "2024-10-27 00:29:57.000000", "2024-10-27 00:31:01.000000", true},
		"blind":                  {now, blind, 0, timeUTC, "2024-10-27 00:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"blind, longer overlap":  {now, blind, time.Hour, timeUTC, "2024-10-26 23:30:00.000000", "2024-10-27 00:30:01.000000", false},
		"blind, something seen":  {now, func(a *activity) { blind(a); a.open(now.Add(-time.Hour), true) }, 0, timeUTC, "2024-10-26 23:29:59.000000", "2024-10-27 00:30:01.000000", false},
		"replica":                {now, func(a *activity) { a.follow(true, time.Hour) }, time.Minute, timeUTC, "2024-10-26 23:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"replica stopped":        {now, func(a *activity) { a.follow(true, -1) }, time.Minute, timeUTC, "", "2024-10-27 00:30:01.000000", false},
		"no replica":             {now, func(a *activity) { a.follow(false, 0) }, 0, timeUTC, "2024-10-27 00:29:59.000000", "2024-10-27 00:30:01.000000", true},
		"prepared":               {now, func(a *activity) { a.hold("prepared") }, 0, timeUTC, "", "2024-10-27 00:30:01.000000", true},
		"a start that is hidden": {now, func(a *activity) { a.open(time.Time{}, true) }, 0, timeUTC, "", "2024-10-27 00:30:01.000000", true},
		"before the fold":        {now, nil, 0, timeWall, "2024-10-27 02:00:00.000000", "2024-10-27 02:30:01.000000", true},
		"after the fold":         {later, nil, 0, timeWall, "2024-10-27 02:29:59.000000", "2024-10-27 02:59:59.000000", true},
		"date":                   {now, nil, 0, timeDate, "2024-10-27", "2024-10-27", true},
	} {
		a := activity{now: test.now}
		if test.change != nil {
			test.change(&a)
		}
		h := a.horizon(test.overlap, test.kind, berlin)
		if h.Cursor != test.want || h.Clock != test.clock || h.Exact != test.exact {
			t.Errorf("%s: horizon = %+v, want %q and the clock %q, %t", name, h, test.want, test.clock, test.exact)
		}
		if (a.inexact || a.held) != (len(a.warnings) > 0) {
			t.Errorf("%s: warnings %q of %+v", name, a.warnings, a)
		}
	}
}

// A statement without a transaction may have ended, or not have begun: it holds the
// mark, and is no time that has gone back.
func TestActivityCounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	const hour, minute = time.Hour, time.Minute
	old := running{"1", now.Add(-hour)}
	reads, changes := transaction{"1", now.Add(-minute), false}, transaction{"1", now.Add(-minute), true}
	for name, test := range map[string]struct {
		open            []transaction
		oldest, certain time.Duration // 0 for nothing
	}{
		"without a transaction":            {nil, hour, 0},
		"in a transaction that only reads": {[]transaction{reads}, 0, 0},
		"in one that writes":               {[]transaction{reads, changes}, hour, hour},
		"another thread writes":            {[]transaction{{"2", now.Add(-minute), true}}, hour, minute},
		"another thread reads":             {[]transaction{{"2", now.Add(-minute), false}}, hour, 0},
		"one was left behind":              {[]transaction{{noThread, now.Add(-minute), true}}, hour, 0},
	} {
		a := activity{now: now}
		a.count([]running{old}, test.open)
		since := func(t time.Time) time.Duration {
			if t.IsZero() {
				return 0
			}
			return now.Sub(t)
		}
		if since(a.oldest) != test.oldest || since(a.certain) != test.certain || a.held {
			t.Errorf("%s: %+v, want the oldest %s and for certain %s ago", name, a, test.oldest, test.certain)
		}
		want, earliest := now.Add(-max(test.oldest, 0)-margin), now.Add(-max(test.certain, margin))
		if h := a.horizon(0, timeUTC, time.UTC); h.Cursor != want.Format(source.MicroLayout) || h.Earliest != earliest.Format(source.MicroLayout) {
			t.Errorf("%s: horizon = %+v, want %s, at the earliest %s", name, h, want, earliest)
		}
	}
}

// While the server does not show its transactions, the horizon stays where it was when
// it did.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	var shared sharedActivity
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var latest observer.Horizon
	cursor := func(a activity) string {
		shared.keep(&a)
		latest = a.horizon(0, timeUTC, time.UTC)
		return latest.Cursor
	}
	at := func(d time.Duration) activity { return activity{now: began.Add(d)} }
	stale := func(d time.Duration) activity { return activity{now: began.Add(d), stale: true} }
	const minute = time.Minute
	if got := cursor(stale(0)); got != "" {
		t.Errorf("horizon %q before anything was seen", got)
	}
	blind := at(minute)
	blind.fallBack("cannot see")
	cursor(blind)
	held := at(minute)
	held.hold("prepared")
	cursor(held)
	if got := cursor(stale(minute)); got != "" {
		t.Errorf("horizon %q although what was seen does not say when it began", got)
	}
	seen := cursor(at(2 * minute))
	for _, after := range []time.Duration{2 * minute, time.Hour} {
		if got := cursor(stale(after)); got != seen {
			t.Errorf("horizon %q after %s, want %q as before", got, after, seen)
		}
		if h := latest; h.Earliest < seen || h.Lag < after-2*minute {
			t.Errorf("horizon %+v after %s", h, after)
		}
	}
	open := at(2 * time.Hour)
	open.open(began.Add(time.Hour), true)
	if seen = cursor(open); cursor(stale(3*time.Hour)) != seen {
		t.Errorf("horizon %+v, want %q, that of the transaction that was open", latest, seen)
	}
}

func TestReplicationDelay(t *testing.T) {
	t.Parallel()
	r := result{columns: []string{"Channel", "Seconds_Behind_Source"}}
	if replica, _ := delay(r); replica {
		t.Error("no channel makes a replica")
	}
	r.rows = [][][]byte{{[]byte("a"), []byte("5")}, {[]byte("b"), []byte("70")}}
	if replica, behind := delay(r); !replica || behind != 70*time.Second {
		t.Errorf("delay = %t, %s, want the greatest", replica, behind)
	}
	r.rows = append(r.rows, [][]byte{[]byte("c"), nil}, [][]byte{[]byte("d"), []byte("9")})
	if replica, behind := delay(r); !replica || behind >= 0 {
		t.Errorf("delay = %t, %s beside a channel that has stopped", replica, behind)
	}
}

func TestIdentityOfVariables(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]variables{
		"":             {"wsrep_cluster_state_uuid": "", "server_uid": "kD/x="},
		"server:1-2-3": {"server_uuid": "1-2-3", "group_replication_group_name": ""},
		"group:7-8":    {"server_uuid": "1-2-3", "group_replication_group_name": "7-8"},
		"galera:9-9":   {"wsrep_cluster_state_uuid": "9-9", "wsrep_cluster_size": "3"},
	} {
		if got := v.identity(); got != want || v.cluster() != (want == "group:7-8" || want == "galera:9-9") {
			t.Errorf("%v: %q, cluster %t, want %q", v, got, v.cluster(), want)
		}
	}
}
