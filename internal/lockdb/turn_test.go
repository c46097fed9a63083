package lockdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

func TestTurnIsRememberedUnderTheLease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, key := t.Context(), "order-observer-poll"
		s, err := db.Turns().Turn(ctx, "order", request(key))
		if err != nil || !s.At.IsZero() || s.Held || s.Now.IsZero() {
			t.Fatalf("before the first turn: %+v, %v", s, err)
		}
		g := acquire(t, db, key)
		at := s.Now.Truncate(time.Second)
		taken := turn.Taken{Type: "order", At: at, Started: at, Finished: at.Add(time.Millisecond), Node: "node-a", Outcome: turn.OK}
		if err := db.Turns().TakeTurn(ctx, g, taken); err != nil {
			t.Fatal(err)
		}
		s, err = db.Turns().Turn(ctx, "order", request(key))
		if err != nil || !s.At.Equal(at) || !s.Held || s.Holder != "node-a" {
			t.Errorf("while held: %+v, %v", s, err)
		}
		earlier := taken
		earlier.At = at.Add(-time.Hour)
		if err := db.Turns().TakeTurn(ctx, g, earlier); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("the turn went back: %v", err)
		}
		expire(ctx, t, url, g)
		later := taken
		later.At = at.Add(time.Hour)
		if err := db.Turns().TakeTurn(ctx, g, later); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("turn taken under an expired lease: %v", err)
		}
		s, err = db.Turns().Turn(ctx, "order", request(key))
		if err != nil || s != (turn.State{At: at, Now: s.Now}) {
			t.Errorf("after expiry: %+v, %v", s, err)
		}
		for typ, want := range map[string]time.Time{"order": at, "wes": {}} {
			last, found, err := db.Turns().TurnAndStreams(ctx, typ, []string{"orders"})
			if err != nil || !last.At.Equal(want) || last.Now.Before(s.Now) || len(found) != 0 {
				t.Errorf("the turn of %s and no streams: %+v, %v, %v", typ, last, found, err)
			}
		}
		r, err := db.Report(ctx, nil)
		last := status.Type{Name: "order", TurnAt: taken.At, LastNode: "node-a", LastOutcome: "ok", LastDuration: time.Millisecond, FinishedAt: taken.Finished}
		if err != nil || len(r.Types) != 1 || r.Types[0] != last {
			t.Errorf("turns: %+v, %v", r.Types, err)
		}
	})
}

// TestTurnKnowsWhoseTTLCounts: that of the holder, and the request's for a holder that is not
// ours, unless the row has its own expiry.
func TestTurnKnowsWhoseTTLCounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		key := lockdb.RowKey("order-observer-poll")
		short := request(key)
		short.TTL = time.Minute
		g, err := db.Leases().Acquire(t.Context(), short)
		if err != nil {
			t.Fatal(err)
		}
		look := func(what string, held bool, holder string) {
			t.Helper()
			if s, err := db.Turns().Turn(t.Context(), "order", request(key)); err != nil || s.Held != held || s.Holder != holder {
				t.Errorf("%s: %+v, %v", what, s, err)
			}
		}
		look("fresh", true, "node-a")
		date(t, url, g.Term, -2*time.Minute)
		look("older than its own TTL", false, "")
		date(t, url, g.Term, time.Hour)
		look("dated ahead", true, "node-a")
		look("dated now", true, "node-a")
		if err := db.Leases().Release(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		foreign(t, url, key, "stranger", -2*time.Minute)
		look("of a stranger, within the TTL of the request", expiryColumn(t, url) == "", "")
		date(t, url, "stranger", -6*time.Minute)
		look("of a stranger, over", false, "")
	})
}

// TestWhatIsKnownOfAStream follows what a node learns of a stream that others polled.
func TestWhatIsKnownOfAStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, g := t.Context(), acquire(t, db, "order-observer-poll")
		s := db.Store(g)
		polled := func(lag time.Duration) {
			t.Helper()
			at := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
			err := db.Turns().NoteStream(ctx, g, turn.StreamTaken{Stream: "orders", Type: "order", Node: "a", At: at, Started: at, Finished: at, Outcome: turn.OK, Lag: lag})
			if err != nil {
				t.Fatal(err)
			}
		}
		known := func(when string, want bool) {
			t.Helper()
			now, err := db.Turns().Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := streamOf(t, db, "orders"); got.OKAt.IsZero() == want || want && (got.OKAt.After(now) || now.Sub(got.OKAt) > time.Minute || got.Lag != time.Hour) {
				t.Errorf("%s at %s: %+v", when, now, got)
			}
		}
		c := cursorOf(t, s, "orders")
		polled(0)
		known("nothing was read yet", false)
		c = mustCommit(t, s, chunk(c, 2)) // Of even versions it is the first reading.
		polled(0)
		known("a first reading", false)
		mustCommit(t, s, chunk(c, 2))
		polled(time.Hour)
		known("after it", true)
		if err := db.Operations().Reset(ctx, "orders", by("tester"), lockdb.ResetOptions{}); err != nil {
			t.Fatal(err)
		}
		known("after a reset", false)
	})
}

func TestStreamTurns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		ctx, at := t.Context(), time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
		g := acquire(t, db, "order-observer-poll")
		note := turn.StreamTaken{Stream: "orders", Type: "order", Node: "node-a", At: at, Started: at, Finished: at, Outcome: turn.Unreachable, Reason: "source is unreachable", Left: true}
		if err := db.Turns().NoteStream(ctx, g, note); err != nil {
			t.Fatal(err)
		}
		if s := streamOf(t, db, "orders"); !s.At.IsZero() {
			t.Errorf("a turn that was left counts as taken: %+v", s)
		}
		note = turn.StreamTaken{Stream: "orders", Type: "order", Node: "node-b", At: at, Started: at, Finished: at, Outcome: turn.Error, Reason: "broken", Failures: 2, FailureClass: "killed", RetryAt: at.Add(time.Minute), Rows: 5, Events: 4, Poison: 1}
		if err := db.Turns().NoteStream(ctx, g, note); err != nil {
			t.Fatal(err)
		}
		if s := streamOf(t, db, "orders"); !s.At.Equal(at) || s.Failures != 2 || s.FailureClass != "killed" || !s.RetryAt.Equal(at.Add(time.Minute)) {
			t.Errorf("after a failure: %+v", s)
		}
		if reason, err := db.Streams().LastError(ctx, "orders"); err != nil || reason != "broken" {
			t.Errorf("the last failure: %q, %v", reason, err)
		}
		ok := turn.StreamTaken{Stream: "orders", Type: "order", Node: "node-b", At: at.Add(time.Minute), Started: at, Finished: at, Outcome: turn.OK}
		if err := db.Turns().NoteStream(ctx, g, ok); err != nil {
			t.Fatal(err)
		}
		statuses, err := db.Streams().Statuses(ctx)
		if err != nil || len(statuses) != 1 || statuses[0].Failures != 0 || !statuses[0].RetryAt.IsZero() || statuses[0].LastOK.IsZero() || statuses[0].LastError != "" {
			t.Errorf("after a success: %+v, %v", statuses, err)
		}
		polls, err := db.Polls(ctx, "", 2)
		if err != nil || len(polls) != 2 || polls[1].Rows != 5 || polls[1].Reason != "broken" || polls[0].Outcome != string(turn.OK) {
			t.Errorf("history: %+v, %v", polls, err)
		}
		// The lag is that of the last poll which went well.
		for _, behind := range []turn.StreamTaken{
			{Outcome: turn.OK, Lag: 90 * time.Second}, {Outcome: turn.Error}, {Outcome: turn.OK},
		} {
			behind.Stream, behind.At, behind.Started, behind.Finished = "orders", at, at, at
			if err := db.Turns().NoteStream(ctx, g, behind); err != nil {
				t.Fatal(err)
			}
			want := 90 * time.Second
			if behind.Outcome == turn.OK {
				want = behind.Lag
			}
			if all, err := db.Streams().Statuses(ctx); err != nil || all[0].Lag != want {
				t.Errorf("after %s with a lag of %s: %+v, %v", behind.Outcome, behind.Lag, all, err)
			}
			if s := streamOf(t, db, "orders"); s.Unread != (want > 0) {
				t.Errorf("after %s with a lag of %s: %+v", behind.Outcome, behind.Lag, s)
			}
		}
	})
}

func streamOf(t *testing.T, db *lockdb.DB, id string) turn.Stream {
	t.Helper()
	all, err := db.Turns().Streams(t.Context(), []string{id})
	if err != nil {
		t.Fatal(err)
	}
	return all[id]
}

func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx := t.Context()
		for _, n := range []turn.Node{
			{BootID: "2", Name: "b", Types: []string{"order", "wes"}, Intervals: map[string]time.Duration{"order": 30 * time.Second, "wes": 1500 * time.Millisecond}}, {BootID: "1", Name: "b"},
			{BootID: "3", Name: "a", Types: []string{"order"}, Unreachable: []string{"order"}, Version: "v1", Backend: "x", ConfigHash: "h"},
		} {
			if err := db.Nodes().Beat(ctx, n); err != nil {
				t.Fatal(err)
			}
		}
		nodes, err := db.Nodes().Nodes(ctx, time.Minute)
		if err != nil || len(nodes) != 3 || nodes[0].BootID != "3" || nodes[1].BootID != "1" || len(nodes[2].Types) != 2 ||
			len(nodes[0].Unreachable) != 1 || nodes[0].SeenAt.IsZero() || nodes[1].Types != nil ||
			len(nodes[1].Intervals) != 0 || len(nodes[2].Intervals) != 2 || nodes[2].Intervals["wes"] != 1500*time.Millisecond {
			t.Fatalf("nodes: %+v, %v", nodes, err)
		}
		exec(ctx, t, url, map[string]string{
			"sqlite":   `UPDATE obs_node SET seen_at = '2000-01-01 00:00:00.000000' WHERE boot_id = '1'`,
			"postgres": `UPDATE obs_node SET seen_at = '2000-01-01' WHERE boot_id = '1'`,
		})
		if err := db.Nodes().Leave(ctx, "2"); err != nil {
			t.Fatal(err)
		}
		if nodes, err = db.Nodes().Nodes(ctx, time.Minute); err != nil || len(nodes) != 1 {
			t.Errorf("after one slept and one left: %+v, %v", nodes, err)
		}
	})
}

// TestAnErrorStaysUntilASuccess has polls after a failure that neither fail nor go well.
func TestAnErrorStaysUntilASuccess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g := acquire(t, db, "order-observer-poll")
		for _, step := range []struct {
			outcome      turn.Outcome
			reason, want string
		}{
			{turn.Error, "timeout: it took too long", "timeout: it took too long"}, {turn.Conflict, "", "timeout: it took too long"},
			{turn.Unreachable, "no route", "no route"}, {turn.OK, "", ""}, {turn.Conflict, "", ""},
		} {
			now := time.Now()
			err := db.Turns().NoteStream(t.Context(), g, turn.StreamTaken{Stream: "orders", Node: "a", At: now, Started: now, Finished: now, Outcome: step.outcome, Reason: step.reason})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := db.Streams().LastError(t.Context(), "orders"); got != step.want || err != nil {
				t.Errorf("after %s: %q, %v, want %q", step.outcome, got, err, step.want)
			}
		}
	})
}

// TestNotesAndReleasesDoNotWaitForTheDisk has triggers tell how each transaction ends.
func TestNotesAndReleasesDoNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	db := open(t, url)
	exec(t.Context(), t, url, map[string]string{"postgres": `
CREATE TABLE public.ended (what text, did text, how text);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.ended VALUES (TG_TABLE_NAME, TG_OP, current_setting('synchronous_commit'));
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ended AFTER INSERT OR UPDATE ON obs_schedule DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE CONSTRAINT TRIGGER ended AFTER INSERT OR UPDATE ON obs_poll DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE CONSTRAINT TRIGGER ended AFTER INSERT OR UPDATE ON obs_observed DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE CONSTRAINT TRIGGER ended AFTER INSERT OR UPDATE OR DELETE ON int_lock DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note()`})
	g := acquire(t, db, "order-observer-poll")
	s := db.Store(g)
	c := cursorOf(t, s, "orders")
	for i := range 5 {
		at := time.Now().Add(time.Duration(i-100) * time.Second)
		if err := db.Turns().NoteStream(t.Context(), g, turn.StreamTaken{Stream: "orders", Type: "order", Node: "a", At: at, Started: at, Finished: at, Outcome: turn.OK}); err != nil {
			t.Fatal(err)
		}
		if err := db.Turns().TakeTurn(t.Context(), g, turn.Taken{Type: "order", At: at, Started: at, Finished: at, Node: "a", Outcome: turn.OK}); err != nil {
			t.Fatal(err)
		}
		c = mustCommit(t, s, chunk(c, 2)) // By the same sessions.
	}
	if err := db.Leases().Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	const wrong = `SELECT count(*) FROM public.ended WHERE (how = 'off') <> (what IN ('obs_schedule', 'obs_poll') OR did = 'DELETE')`
	if n := count(t, url, wrong); n != 0 {
		t.Errorf("%d rows were written by a transaction that ended in the other way", n)
	}
	if n := count(t, url, `SELECT count(DISTINCT what) + count(DISTINCT did) FILTER (WHERE did = 'DELETE') FROM public.ended`); n != 5 {
		t.Errorf("%d tables were written and a lock released, want 5", n)
	}
}
