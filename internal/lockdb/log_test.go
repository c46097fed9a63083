package lockdb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/eventlog"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestOffsetsMoveForwardUnderTheLatestEpoch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, log := t.Context(), db.Log()
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 5))
		cursorOf(t, s, "silent")
		check := func(acknowledged int64) {
			t.Helper()
			backlog, err := log.Backlog(ctx, "file")
			if err != nil || len(backlog) != 1 {
				t.Fatalf("backlog: %+v, %v", backlog, err)
			}
			next, err := log.After(ctx, "orders", acknowledged, 1)
			if err != nil || len(next) != 1 {
				t.Fatalf("the next event: %+v, %v", next, err)
			}
			b := backlog[0]
			if !b.Oldest.Equal(next[0].Observed) || b.Now.Before(b.Oldest) || b.Now.Sub(b.Oldest) > time.Minute {
				t.Errorf("the oldest event is of %s at %s, and was logged at %s", b.Oldest, b.Now, next[0].Observed)
			}
			b.Oldest, b.Now = time.Time{}, time.Time{}
			if b != (events.Backlog{Stream: "orders", Offset: acknowledged, Next: acknowledged + 1, Last: 5}) {
				t.Fatalf("backlog: %+v", b)
			}
		}
		check(0)
		if _, err := log.Claim(ctx, "file", 7); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Claim(ctx, "file", 6); !errors.Is(err, events.ErrStale) {
			t.Errorf("a former relay claimed the sink: %v", err)
		}
		if err := settle(t, log, "file", "orders", 3, 6); !errors.Is(err, events.ErrStale) {
			t.Errorf("a former relay moved the offset: %v", err)
		}
		check(0)
		if err := settle(t, log, "file", "orders", 3, 7); err != nil {
			t.Fatal(err)
		}
		check(3)
		// The answer to an acknowledgement was lost, and it is sent again.
		if err := settle(t, log, "file", "orders", 3, 7); err != nil {
			t.Error(err)
		}
		check(3)
		part, err := log.After(ctx, "orders", 3, 1)
		if err != nil || len(part) != 1 || part[0].Seq != 4 {
			t.Errorf("read after 3: %+v, %v", part, err)
		}
		offsets, err := log.Offsets(ctx, time.Now())
		if err != nil || len(offsets) != 2 || offsets[0].Offset != 3 || offsets[0].Lag == 0 || offsets[1].Lag != 0 {
			t.Errorf("offsets: %+v, %v", offsets, err)
		}
		if err := settle(t, log, "file", "orders", 5, 7); err != nil {
			t.Fatal(err)
		}
		if backlog, err := log.Backlog(ctx, "file"); err != nil || len(backlog) != 0 {
			t.Errorf("all is stored, and yet: %+v, %v", backlog, err)
		}
	})
}

func TestReportOfABusyDatabase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g := acquire(t, db, "order-observer-poll")
		s := db.Store(g)
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 5))
		if _, err := db.Log().Claim(t.Context(), "file", 1); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		note := turn.StreamTaken{Stream: "orders", Node: "node-a", Started: began, Finished: began.Add(time.Second), Outcome: turn.OK, Rows: 5}
		if err := db.Turns().NoteStream(t.Context(), g, note); err != nil {
			t.Fatal(err)
		}
		r, err := db.Report(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Observers) != 1 || r.Observers[0].Events != 5 || r.Observers[0].State != "active" || r.At.IsZero() {
			t.Errorf("observers: %+v", r.Observers)
		}
		if got := r.Observers[0].Recent; got != (status.Recent{Span: 10 * time.Minute, Polls: 1, Rows: 5}) {
			t.Errorf("of the last minutes: %+v", got)
		}
		if len(r.Locks) != 1 || r.Locks[0].Holder != "node-a" || r.Locks[0].Fence != g.Fence || r.Locks[0].Left <= 0 || r.Locks[0].Key != g.Key {
			t.Errorf("locks: %+v", r.Locks)
		}
		if len(r.Polls) != 1 || r.Polls[0].Observer != "orders" || r.Polls[0].Rows != 5 || r.Polls[0].Duration != time.Second || r.Polls[0].Outcome != "ok" {
			t.Errorf("polls: %+v", r.Polls)
		}
		if len(r.Sinks) != 1 || r.Sinks[0].Last != 5 || r.Sinks[0].Offset != 0 || r.Sinks[0].Lag < 0 {
			t.Errorf("sinks: %+v", r.Sinks)
		}
	})
}

// TestReadIsBoundedByBytes keeps a relay's memory bounded when rows are large.
func TestReadIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		ch := chunk(cursorOf(t, s, "orders"), 20)
		for i := range ch.Events {
			ch.Events[i].Data = []byte(`{"note":"` + strings.Repeat("x", 1<<20) + `"}`)
		}
		mustCommit(t, s, ch)
		part, err := db.Log().After(t.Context(), "orders", 0, 20)
		if err != nil || len(part) == 0 || len(part) > 10 {
			t.Errorf("%d events of 1 MiB at once, %v", len(part), err)
		}
	})
}

// TestEventWithoutAnIDIsAnError has one between two others, whose id it must not take.
func TestEventWithoutAnIDIsAnError(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3))
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_event SET event_id = '' WHERE seq = 2`,
			"postgres": `UPDATE obs_event SET event_id = '00000000-0000-0000-0000-000000000000' WHERE seq = 2`,
		})
		if read, err := db.Log().After(t.Context(), "orders", 0, 3); err == nil || !strings.Contains(err.Error(), "event 2 has no id") {
			t.Errorf("%d events, %v", len(read), err)
		}
	})
}

// TestFormerRelayCannotTouchANewStream covers streams that are born after the
// sink was claimed.
func TestFormerRelayCannotTouchANewStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, log := t.Context(), db.Log()
		for _, epoch := range []int64{1, 2} {
			if _, err := log.Claim(ctx, "file", epoch); err != nil {
				t.Fatal(err)
			}
		}
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
		if err := settle(t, log, "file", "orders", 10, 1); !errors.Is(err, events.ErrStale) {
			t.Errorf("a former relay acknowledged a new stream: %v", err)
		}
		if err := settle(t, log, "file", "orders", 5, 2); err != nil {
			t.Errorf("the present relay was refused: %v", err)
		}
		if backlog, err := log.Backlog(ctx, "file"); err != nil || len(backlog) != 1 || backlog[0].Offset != 5 {
			t.Errorf("backlog %+v, %v", backlog, err)
		}
	})
}

// settle reads what the sink lacks up to seq, and acknowledges it.
func settle(t *testing.T, log *eventlog.Log, sink, stream string, seq, epoch int64) error {
	t.Helper()
	offsets, err := log.Offsets(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var after int64
	for _, o := range offsets {
		if o.Sink == sink && o.Stream == stream && o.Offset < seq {
			after = o.Offset
		}
	}
	batch, err := log.After(t.Context(), stream, after, int(seq-after))
	if err != nil || len(batch) == 0 {
		t.Fatalf("read %s after %d: %d events, %v", stream, after, len(batch), err)
	}
	return log.Move(t.Context(), sink, []events.Step{{After: after, Events: batch}}, epoch)
}

// TestAcknowledgesWhatTheLogHolds changes the log, the offset or the claim between a
// read and its acknowledgement, as a failover to a standby that lags does.
func TestAcknowledgesWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change string
		want   error
		// read is what comes where the server is known that the events were read from, and is
		// the same: nobody changes the log by hand there.
		read error
	}{
		"nothing changes":             {`UPDATE obs_event SET version = version`, nil, nil},
		"the answer was lost":         {`UPDATE obs_sink_offset SET last_seq = 5 WHERE stream = 'orders'`, nil, nil},
		"an inner event is another":   {`UPDATE obs_event SET event_id = '6f1f4e0e-3e5c-4b0f-8a53-111111111111' WHERE seq = 4`, events.ErrLogChanged, nil},
		"the last event is another":   {`UPDATE obs_event SET event_id = '6f1f4e0e-3e5c-4b0f-8a53-111111111111' WHERE seq = 5`, events.ErrLogChanged, events.ErrLogChanged},
		"the last event is missing":   {`DELETE FROM obs_event WHERE seq = 5`, events.ErrLogChanged, events.ErrLogChanged},
		"an inner event is missing":   {`DELETE FROM obs_event WHERE seq = 4`, events.ErrLogChanged, nil},
		"the offset went back":        {`UPDATE obs_sink_offset SET last_seq = 1 WHERE stream = 'orders'`, events.ErrLogChanged, events.ErrLogChanged},
		"the offset is within":        {`UPDATE obs_sink_offset SET last_seq = 4 WHERE stream = 'orders'`, events.ErrLogChanged, events.ErrLogChanged},
		"the offset is beyond":        {`UPDATE obs_sink_offset SET last_seq = 6 WHERE stream = 'orders'`, events.ErrLogChanged, events.ErrLogChanged},
		"the offset is no more":       {`DELETE FROM obs_sink_offset WHERE stream = 'orders'`, events.ErrLogChanged, events.ErrLogChanged},
		"the claim is no more":        {`DELETE FROM obs_sink_offset WHERE stream = ''`, events.ErrStale, events.ErrStale},
		"the claim went back":         {`UPDATE obs_sink_offset SET epoch = 6 WHERE stream = ''`, events.ErrStale, events.ErrStale},
		"a later relay has claimed":   {`UPDATE obs_sink_offset SET epoch = 8 WHERE stream = ''`, events.ErrStale, events.ErrStale},
		"another stream's id changed": {`UPDATE obs_event SET event_id = '6f1f4e0e-3e5c-4b0f-8a53-111111111111' WHERE stream = 'stock'`, nil, nil},
		"the table is emptied and filled with others": {
			`CREATE TEMPORARY TABLE kept AS SELECT * FROM obs_event; TRUNCATE obs_event; UPDATE kept SET event_id = '6f1f4e0e-3e5c-4b0f-8a53-111111111111' WHERE seq = 4; INSERT INTO obs_event SELECT * FROM kept`,
			events.ErrLogChanged, events.ErrLogChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				log := db.Log()
				s := db.Store(acquire(t, db, "order-observer-poll"))
				mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 5))
				mustCommit(t, s, chunk(cursorOf(t, s, "stock"), 1))
				if _, err := log.Claim(t.Context(), "file", 7); err != nil {
					t.Fatal(err)
				}
				if err := settle(t, log, "file", "orders", 2, 7); err != nil {
					t.Fatal(err)
				}
				batch, server, err := log.Read(t.Context(), []events.Range{{Stream: "orders", After: 2, Last: 5}}, 1<<20)
				if err != nil || len(batch) != 3 {
					t.Fatalf("%d events, %v", len(batch), err)
				}
				exec(t.Context(), t, url, map[string]string{"postgres": tc.change, "sqlite": strings.Replace(tc.change, "TRUNCATE", "DELETE FROM", 1)})
				read := tc.read
				if server == "" {
					read = tc.want
				}
				step := events.Step{After: 2, Events: batch, Server: server}
				if err := log.Move(t.Context(), "file", []events.Step{step}, 7); !errors.Is(err, read) {
					t.Errorf("acknowledge to the server that was read: %v, want %v", err, read)
				}
				if read == nil && tc.want != nil {
					return
				}
				step.Server = ""
				if err := log.Move(t.Context(), "file", []events.Step{step}, 7); !errors.Is(err, tc.want) {
					t.Errorf("acknowledge: %v, want %v", err, tc.want)
				}
			})
		})
	}
}

// TestWhyASinkFails has nodes note the state of a sink, under the epochs of their relays.
func TestWhyASinkFails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		log := db.Log()
		failed := func(reason string, epoch int64) {
			t.Helper()
			if err := log.Failed(t.Context(), "file", reason, epoch); err != nil {
				t.Fatal(err)
			}
		}
		want := func(reason string) status.Sink {
			t.Helper()
			offsets, err := log.Offsets(t.Context(), time.Now())
			if err != nil || len(offsets) != 1 || offsets[0].LastError != reason || offsets[0].FailedAt.IsZero() != (reason == "") {
				t.Fatalf("%+v, %v, want %q", offsets, err, reason)
			}
			return offsets[0]
		}
		if _, err := log.Claim(t.Context(), "file", 2); err != nil {
			t.Fatal(err)
		}
		want("")
		failed("the disk is full", 1) // By a former relay.
		want("")
		failed("the disk is full", 2)
		first := want("the disk is full")
		failed("the folder has gone", 2)
		if now := want("the folder has gone"); !now.FailedAt.Equal(first.FailedAt) {
			t.Errorf("it fails since %s, and not %s", now.FailedAt, first.FailedAt)
		}
		if _, err := log.Claim(t.Context(), "file", 3); err != nil {
			t.Fatal(err)
		}
		want("the folder has gone") // It stays until a success.
		failed("", 2)
		want("the folder has gone")
		failed("", 3)
		want("")
	})
}
