package check_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/test/torture/check"
	"github.com/observerd/observerd/test/torture/history"
)

// The cost of a row must not grow with their number.
func BenchmarkCheck(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			run := large(rows)
			for b.Loop() {
				if r := check.Check(run); len(r.Found) > 0 {
					b.Fatal(r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}

// large has that many rows, one commit for each hundred.
func large(rows int) history.Run {
	const chunk = 100
	run := history.Run{Delivered: map[string][]history.Event{}}
	run.Meta = history.Meta{Interval: interval, TTL: ttl, Streams: []history.Stream{{Name: "change", Type: "t", Mode: history.ModeChange, LockKey: "l"}}}
	began := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	run.Leases = []history.Lease{{ID: 1, Key: "l", NewTerm: "t", At: began}}
	run.Grants = []history.Grant{{ID: 1, Key: "l", Term: "t", Fence: 1, Node: "a", At: began}}
	for i := range rows {
		at := began.Add(time.Duration(i) * time.Millisecond)
		key, xid := fmt.Sprintf("row-%d", i), fmt.Sprint(i/chunk)
		run.Writes = append(run.Writes, history.Write{Stream: "change", Key: key, N: 1, At: at})
		run.Events = append(run.Events, history.Event{
			Stream: "change", Seq: int64(i + 1), ID: key, Subject: key, Version: 1, Change: "new", N: 1, Xid: xid,
		})
		if i%chunk == 0 {
			n := int64(i / chunk)
			run.Steps = append(run.Steps, history.Step{
				ID: n + 1, Stream: "change", OldVersion: n, NewVersion: n + 1, OldSeq: n * chunk, NewSeq: (n + 1) * chunk,
				Xid: xid, At: at, Node: "a", Holder: "a", HolderTerm: "t",
			})
			run.Polls = append(run.Polls, history.Poll{Stream: "change", Node: "a", Begin: at, End: at})
		}
	}
	sink := make([]history.Event, rows)
	for i, e := range run.Events {
		e.Xid = ""
		sink[i] = e
	}
	run.Delivered["file"] = sink
	return run
}
