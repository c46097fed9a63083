package mysql

import (
	"testing"
	"time"
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
	for name, test := range map[string]struct {
		activity    activity
		overlap     time.Duration
		kind        timeKind
		want, clock string
		exact       bool
	}{
		"nothing open":    {activity{now: now}, 0, timeUTC, "2024-10-27 00:29:59.000000", "2024-10-27 00:30:01.000000", true},
		"a transaction":   {activity{now: now, oldest: now.Add(-time.Minute)}, 0, timeUTC, "2024-10-27 00:28:59.000000", "2024-10-27 00:30:01.000000", true},
		"whole seconds":   {activity{now: now, grain: mysqlGrain}, 0, timeUTC, "2024-10-27 00:29:57.000000", "2024-10-27 00:30:01.000000", true},
		"a late start":    {activity{now: now.Add(time.Minute), oldest: now.Add(-mysqlGrain), grain: mysqlGrain}, 0, timeUTC, "2024-10-27 00:29:57.000000", "2024-10-27 00:31:01.000000", true},
		"no right":        {activity{now: now, hidden: true}, 0, timeUTC, "2024-10-27 00:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"stale":           {activity{now: now, stale: true, staleFor: time.Minute}, time.Hour, timeUTC, "2024-10-26 23:30:00.000000", "2024-10-27 00:30:01.000000", false},
		"stale for once":  {activity{now: now, stale: true, staleFor: 59 * time.Second}, time.Hour, timeUTC, "", "2024-10-27 00:30:01.000000", false},
		"seen, read-only": {activity{now: now, replica: true, oldest: now.Add(-time.Hour)}, 0, timeUTC, "2024-10-26 23:29:59.000000", "2024-10-27 00:30:01.000000", false},
		"cluster":         {activity{now: now, cluster: true}, 0, timeUTC, "2024-10-27 00:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"another engine":  {activity{now: now, foreign: foreign("ROCKSDB")}, 0, timeUTC, "2024-10-27 00:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"replica":         {activity{now: now, replica: true, behind: time.Hour}, time.Minute, timeUTC, "2024-10-26 23:29:00.000000", "2024-10-27 00:30:01.000000", false},
		"replica stopped": {activity{now: now, replica: true, behind: -1}, time.Minute, timeUTC, "", "2024-10-27 00:30:01.000000", false},
		"prepared":        {activity{now: now, held: true}, 0, timeUTC, "", "2024-10-27 00:30:01.000000", true},
		"before the fold": {activity{now: now}, 0, timeWall, "2024-10-27 02:00:00.000000", "2024-10-27 02:30:01.000000", true},
		"after the fold":  {activity{now: later}, 0, timeWall, "2024-10-27 02:29:59.000000", "2024-10-27 02:59:59.000000", true},
		"date":            {activity{now: now}, 0, timeDate, "2024-10-27", "2024-10-27", true},
	} {
		h := test.activity.horizon(test.overlap, test.kind, berlin)
		if h.Cursor != test.want || h.Clock != test.clock || h.Exact != test.exact {
			t.Errorf("%s: horizon = %+v, want %q and the clock %q, %t", name, h, test.want, test.clock, test.exact)
		}
	}
}

// A read that has not seen the transactions for once is no time that has gone back.
func TestStaleReadTakesNothingBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	before := activity{now: now}.horizon(0, timeUTC, time.UTC)
	for name, test := range map[string]struct {
		activity activity
		back     bool
	}{
		"stale":                        {activity{now: now.Add(time.Second), stale: true, staleFor: time.Hour}, false},
		"stale, with a clock set back": {activity{now: now.Add(-time.Minute), stale: true, staleFor: time.Hour}, true},
		"hidden":                       {activity{now: now.Add(time.Second), hidden: true}, true},
	} {
		if h := test.activity.horizon(0, timeUTC, time.UTC); (h.Earliest < before.Cursor) != test.back || h.Exact || h.Cursor >= before.Cursor {
			t.Errorf("%s: horizon = %+v after %s, want it to tell of a time that went back: %t", name, h, before.Cursor, test.back)
		}
	}
}

// The mark waits from the first stale read on, whenever the last good one was.
func TestStaleReadsInARow(t *testing.T) {
	t.Parallel()
	shared, began := newSharedActivity(), time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		after        time.Duration
		stale, brief bool
	}{
		{0, true, true}, {59 * time.Second, true, true}, {time.Second, true, false}, {time.Hour, true, false},
		{time.Second, false, false}, {time.Hour, true, true},
	} {
		began = began.Add(step.after)
		shared.keep(activity{now: began, stale: step.stale}, began)
		if shared.latest.brieflyStale() != step.brief {
			t.Errorf("read %d: %+v, want it to hold the mark: %t", i, shared.latest, step.brief)
		}
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
