package sqlsink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// canary is a value that must be in no error.
const canary = "c4n4ry"

func inbox(url string) sqlsink.Options {
	return sqlsink.Options{Sink: "inbox", URL: url, Schema: "public"}
}

func stored(t *testing.T, conn *pgx.Conn) int {
	return query[int](t, conn, `SELECT count(*) FROM obs_feed_event`)
}

// says checks an error, and that no value of a row is in it.
func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one of %q", texts)
		return
	}
	for _, text := range append(texts, "") {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), canary) {
			t.Errorf("the error is %q, want %q in it, and no value", err, text)
		}
	}
}

// TestLateBatchOfAFormerSessionIsRefused has a batch arrive when the same term has opened the
// sink anew, and has stored more.
func TestLateBatchOfAFormerSessionIsRefused(t *testing.T) {
	t.Parallel()
	direct := database(t)
	proxied, proxy := netfault.StartBefore(t, direct)
	former := open(t, inbox(proxied), 7)
	deliver(t, former, sinktest.Batch("orders", 1, 1))
	hold, held := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !bytes.Contains(request, []byte("obs_feed_event")) || !bytes.Contains(request, []byte("COMMIT")) || once.Swap(true) {
			return netfault.Fault{}
		}
		close(held)
		return netfault.Fault{Hold: hold}
	})
	late := make(chan error, 1)
	go func() {
		_, err := former.Deliver(t.Context(), sinktest.Batch("orders", 2, 3))
		late <- err
	}()
	<-held
	present := open(t, inbox(direct), 7)
	deliver(t, present, sinktest.Batch("orders", 2, 5))
	close(hold)
	says(t, <-late, "another session")
	at, err := present.Positions(t.Context(), []string{"orders"})
	if err != nil || len(at) != 1 || at[0].Seq != 5 {
		t.Errorf("the position is %v, %v, want 5", at, err)
	}
}

// TestOpeningWaitsForASessionThatIsStoring has a former session stand in the middle of a batch.
func TestOpeningWaitsForASessionThatIsStoring(t *testing.T) {
	t.Parallel()
	url := database(t,
		`CREATE FUNCTION stand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`,
		`CREATE TRIGGER s AFTER INSERT ON obs_feed_event EXECUTE FUNCTION stand()`)
	former, conn := open(t, inbox(url), 1), connect(t, url)
	_ = query[string](t, conn, `SELECT pg_advisory_lock(1)::text`)
	var work sync.WaitGroup
	work.Go(func() { deliver(t, former, sinktest.Batch("orders", 1, 3)) })
	waits(t, conn, 1)
	work.Go(func() {
		at, err := open(t, inbox(url), 1).Positions(t.Context(), []string{"orders"})
		if err != nil || len(at) != 1 || at[0].Seq != 3 {
			t.Errorf("the position is %v, %v, want 3", at, err)
		}
	})
	waits(t, conn, 2)
	_ = query[bool](t, conn, `SELECT pg_advisory_unlock(1)`)
	work.Wait()
}

func TestAnEarlierTermLearnsOfTheLaterOne(t *testing.T) {
	t.Parallel()
	url := database(t)
	earlier := open(t, inbox(url), 4)
	_ = open(t, inbox(url), 9)
	_, delivered := earlier.Deliver(t.Context(), sinktest.Batch("orders", 1, 1))
	_, opened := sqlsink.Open(t.Context(), inbox(url), sink.Term{Log: theLog, Epoch: 8})
	for _, err := range []error{delivered, opened} {
		if stale := (*sink.StaleError)(nil); !errors.As(err, &stale) || stale.Epoch != 9 {
			t.Errorf("the error is %v, want that of a later term", err)
		}
	}
}

func TestASecondSinkIsRefused(t *testing.T) {
	t.Parallel()
	url := database(t)
	_ = open(t, inbox(url), 4)
	o := inbox(url)
	o.Sink = "other"
	_, err := sqlsink.Open(t.Context(), o, sink.Term{Log: theLog, Epoch: 9})
	says(t, err, "the tables belong to the sink inbox", "another schema")
}

// TestPoison has the fourth event of a stream be one that the server refuses, of six and three
// of another stream.
func TestPoison(t *testing.T) {
	t.Parallel()
	const raise = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.type = 'poison' THEN RAISE EXCEPTION USING MESSAGE = NEW.subject%s; END IF; RETURN NEW; END $$;`
	for name, tc := range map[string]struct {
		statement string
		poison    func(e *events.Event)
		why       string
	}{
		"a constraint":           {`ALTER TABLE obs_feed_event ADD CONSTRAINT good CHECK (type <> 'poison')`, nil, "SQLSTATE 23514, constraint good of obs_feed_event"},
		"a trigger":              {fmt.Sprintf(raise, "") + `CREATE TRIGGER r BEFORE INSERT ON obs_feed_event FOR EACH ROW EXECUTE FUNCTION refuse()`, nil, "SQLSTATE P0001"},
		"a trigger that lies":    {fmt.Sprintf(raise, ", ERRCODE = '23505', CONSTRAINT = NEW.subject, TABLE = NEW.subject") + `CREATE TRIGGER r BEFORE INSERT ON obs_feed_event FOR EACH ROW EXECUTE FUNCTION refuse()`, nil, "SQLSTATE 23505"},
		"a trigger at the end":   {fmt.Sprintf(raise, "") + `CREATE CONSTRAINT TRIGGER r AFTER INSERT ON obs_feed_event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`, nil, "SQLSTATE P0001"},
		"a silent trigger":       {`CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.type = 'poison' THEN RETURN NULL; END IF; RETURN NEW; END $$; CREATE TRIGGER r BEFORE INSERT ON obs_feed_event FOR EACH ROW EXECUTE FUNCTION drop()`, nil, "leaves it out"},
		"a key of the team's":    {`CREATE UNIQUE INDEX one ON obs_feed_event (type) WHERE type = 'poison'; INSERT INTO obs_feed_event (event_id, sink, stream, seq, type, subject, change, version, snapshot) VALUES (gen_random_uuid(), '', '', 0, 'poison', '', '', 0, false)`, nil, "SQLSTATE 23505, constraint one of obs_feed_event"},
		"what is no JSON":        {``, func(e *events.Event) { e.Data = []byte(canary) }, "SQLSTATE 22P02"},
		"a zero byte":            {``, func(e *events.Event) { e.Subject = canary + "\x00" }, "SQLSTATE 22021"},
		"a byte of no UTF-8":     {``, func(e *events.Event) { e.Subject = canary + "\xff" }, "SQLSTATE 22021"},
		"too large for an index": {`CREATE INDEX ON obs_feed_event (subject)`, func(e *events.Event) { e.Subject = scrambled(300 << 10) }, "SQLSTATE 54000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t, tc.statement)
			s, conn := open(t, inbox(url), 1), connect(t, url)
			before := stored(t, conn)
			orders, stock := sinktest.Batch("orders", 1, 6), sinktest.Batch("stock", 1, 3)
			if orders[3].Type, orders[3].Subject = "poison", canary; tc.poison != nil {
				tc.poison(&orders[3])
			}
			result, err := s.Deliver(t.Context(), append(orders, stock...))
			if err != nil || len(result.Rejected) != 1 || result.Rejected[0].ID != orders[3].ID {
				t.Fatalf("rejected %v, %v, want %s", result.Rejected, err, orders[3].ID)
			}
			says(t, errors.New(result.Rejected[0].Reason), tc.why)
			at, err := s.Positions(t.Context(), []string{"orders", "stock"})
			want := append(events.Ends(orders[:3], theLog, nil), events.Ends(stock, theLog, nil)...)
			if slices.SortFunc(at, func(a, b events.Position) int { return strings.Compare(a.Stream, b.Stream) }); err != nil || !slices.Equal(at, want) {
				t.Errorf("the positions are %v, %v, want %v", at, err, want)
			}
			if n := stored(t, conn) - before; n != 6 {
				t.Errorf("%d events are stored, want 6", n)
			}
		})
	}
}

// scrambled is a text that does not compress.
func scrambled(n int) string {
	text, x := make([]byte, n), uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = 'a' + byte(x>>24)%26
	}
	return string(text)
}

// TestARepeatWithinASessionIsStoredOnce has the session expect new events.
func TestARepeatWithinASessionIsStoredOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, inbox(url), 1)
	deliver(t, s, sinktest.Batch("orders", 1, 3))
	deliver(t, s, sinktest.Batch("orders", 4, 6))
	deliver(t, s, sinktest.Batch("orders", 5, 8))
	deliver(t, s, sinktest.Batch("orders", 9, 9))
	conn := connect(t, url)
	if n, last := stored(t, conn), query[int](t, conn, `SELECT seq FROM obs_feed WHERE stream = 'orders'`); n != 9 || last != 9 {
		t.Errorf("%d events are stored up to %d, want 9 up to 9", n, last)
	}
}

func TestHugeEventIsRejectedUnsent(t *testing.T) {
	t.Parallel()
	batch := sinktest.Batch("orders", 1, 2)
	batch[1].Data = make([]byte, 1<<29+1)
	result, err := open(t, inbox(database(t)), 1).Deliver(t.Context(), batch)
	if err != nil || len(result.Stored) != 1 || len(result.Rejected) != 1 || result.Rejected[0].Seq != 2 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestWhatIsMissingIsSaid asks the sink and the probe alike.
func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	tables := []string{`REVOKE CREATE ON SCHEMA public FROM PUBLIC`, sqlsink.DDL("public")}
	grants := []string{"SELECT, INSERT, UPDATE ON obs_feed", "SELECT, INSERT ON obs_feed_event"}
	for name, tc := range map[string]struct {
		statements, grants []string
		schema             string
		create             bool
		says, found        string
	}{
		"tables":              {nil, nil, "public", false, "observerd sinks sql", "observerd sinks sql"},
		"schema":              {nil, nil, "inbox", false, "create: true", "create: true"},
		"rights":              {tables, nil, "public", false, "GRANT", "GRANT"},
		"right to insert":     {tables, []string{grants[0], "SELECT ON obs_feed_event"}, "public", false, "GRANT", "GRANT"},
		"right to update":     {tables, []string{"SELECT, INSERT ON obs_feed", grants[1]}, "public", false, "GRANT", "GRANT"},
		"right to create":     {tables[:1], nil, "public", true, "GRANT", "GRANT CREATE"},
		"right to the schema": {nil, nil, "inbox", true, "GRANT", "GRANT CREATE"},
		"a column":            {append(tables, `ALTER TABLE obs_feed_event DROP COLUMN version`), grants, "public", false, "are not those", "are not those"},
		"the unique key":      {append(tables, `ALTER TABLE obs_feed_event DROP CONSTRAINT obs_feed_event_event_id_key`), grants, "public", false, "unique key", "unique key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := pgtest.New(t)
			execute(t, owner, tc.statements...)
			role := pgtest.NewRole(t, owner, tc.grants...)
			s, err := sqlsink.Open(t.Context(), sqlsink.Options{Sink: "inbox", URL: role, Schema: tc.schema, Create: tc.create}, sink.Term{Log: theLog, Epoch: 1})
			if err == nil {
				_, err = s.Deliver(t.Context(), sinktest.Batch("orders", 1, 1))
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			says(t, err, tc.says)
			probed(t, settings(t, role, tc.schema, tc.create), "! "+tc.found)
		})
	}
}

// TestNodesMakeTheTablesOneAfterTheOther has all of them find none, and wait for one who gives up.
func TestNodesMakeTheTablesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const nodes = 4
	url := pgtest.New(t)
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `CREATE SCHEMA "In""box"`); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for epoch := range int64(nodes) {
		work.Go(func() {
			s, err := sqlsink.Open(t.Context(), sqlsink.Options{Sink: "inbox", URL: url, Schema: `In"box`, Create: true}, sink.Term{Log: theLog, Epoch: epoch})
			if stale := (*sink.StaleError)(nil); err != nil && !errors.As(err, &stale) {
				t.Error(err)
			}
			if s != nil && s.Close() != nil {
				t.Error("close")
			}
		})
	}
	waits(t, connect(t, url), nodes)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	work.Wait()
}

// waits returns when as many sessions wait for a lock.
func waits(t *testing.T, conn *pgx.Conn, sessions int) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		n := query[int](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if n < sessions {
			return fmt.Errorf("%d sessions wait, want %d", n, sessions)
		}
		return nil
	})
}

// TestTriggerThatSpeaksOfTheServer has one say a value under a code of the server's resources.
func TestTriggerThatSpeaksOfTheServer(t *testing.T) {
	t.Parallel()
	s := open(t, inbox(database(t,
		`CREATE FUNCTION lie() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING MESSAGE = NEW.subject, ERRCODE = '53100'; END $$`,
		`CREATE TRIGGER l BEFORE INSERT ON obs_feed_event FOR EACH ROW EXECUTE FUNCTION lie()`)), 1)
	batch := sinktest.Batch("orders", 1, 1)
	batch[0].Subject = canary
	_, err := s.Deliver(t.Context(), batch)
	says(t, err, "SQLSTATE 53100")
}

func TestStandbyIsNoTarget(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	url := primary.URL("postgres")
	execute(t, url, sqlsink.DDL("public"))
	standby := primary.Standby(t).URL("postgres")
	_, err := sqlsink.Open(t.Context(), inbox(standby), sink.Term{Log: theLog, Epoch: 1})
	says(t, err, "25006", "name the primary")
	probed(t, settings(t, standby, "public", false), "! name the primary")
}

// TestCommitsAreDurableBehindAPooler has a role whose commits are not, and sessions that many
// share.
func TestCommitsAreDurableBehindAPooler(t *testing.T) {
	t.Parallel()
	owner := database(t,
		`CREATE TABLE seen (value text)`,
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`,
		`CREATE TRIGGER n AFTER INSERT ON obs_feed_event EXECUTE FUNCTION note()`)
	role := pgtest.NewRole(t, owner, "ALL ON obs_feed, obs_feed_event, seen")
	user := connect(t, role).Config().User
	execute(t, owner, `ALTER ROLE `+pgx.Identifier{user}.Sanitize()+` SET synchronous_commit = off`)
	pooler := bouncertest.Start(t, role, bouncertest.Options{Mode: "transaction"})
	conn := connect(t, owner)
	for epoch := range int64(3) {
		s := open(t, inbox(pooler.URL()), epoch+1)
		deliver(t, s, sinktest.Batch("orders", 3*epoch+1, 3*epoch+3))
	}
	if got := query[string](t, conn, `SELECT string_agg(DISTINCT value, ' ') FROM seen`); got != "on" || stored(t, conn) != 9 {
		t.Errorf("synchronous_commit was %s, and %d events are stored", got, stored(t, conn))
	}
}

// TestPassedOverDeadlineEndsTheStatement has a lock in the way.
func TestPassedOverDeadlineEndsTheStatement(t *testing.T) {
	t.Parallel()
	url := database(t)
	s, other := open(t, inbox(url), 1), connect(t, url)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE obs_feed_event`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Deliver(ctx, sinktest.Batch("orders", 1, 1)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may have locked") {
		t.Errorf("the error is %v, want that of the context", err)
	}
	if err := errors.Join(s.Close(), tx.Commit(t.Context())); err != nil {
		t.Error(err)
	}
	_ = open(t, inbox(url), 1)
	if n := stored(t, other); n != 0 {
		t.Errorf("%d events are stored behind the deadline", n)
	}
}

// TestATargetThatWentBackStoresNothing takes the last batch back behind the session, as a
// failover behind a pooler does that loses the last second. Another session goes on.
func TestATargetThatWentBackStoresNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	s, conn := open(t, inbox(url), 4), connect(t, url)
	batch := sinktest.Batch("orders", 1, 9)
	for _, part := range [][]events.Event{batch[:3], batch[3:6]} {
		if _, err := s.Deliver(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	back := events.Ends(batch[:3], theLog, nil)[0]
	if _, err := conn.Exec(t.Context(), `UPDATE obs_feed SET seq = 3, event_id = $1, digest = $2 WHERE stream = 'orders'`, back.ID, back.Digest); err != nil {
		t.Fatal(err)
	}
	execute(t, url, `DELETE FROM obs_feed_event WHERE seq > 3`)
	_, err := s.Deliver(t.Context(), batch[6:])
	says(t, err, "the target went back")
	_, err = s.Redeliver(t.Context(), batch[1:2])
	says(t, err, "the target went back")
	if n := stored(t, conn); n != 3 {
		t.Errorf("%d events are stored, want 3", n)
	}
	again := open(t, inbox(url), 4)
	found, err := again.Positions(t.Context(), []string{"orders"})
	if err != nil || len(found) != 1 || found[0] != back {
		t.Fatalf("the positions are %v, %v, want %v", found, err, back)
	}
	if _, err := again.Deliver(t.Context(), batch[3:]); err != nil || stored(t, conn) != 9 {
		t.Errorf("%d events are stored, %v, want 9", stored(t, conn), err)
	}
}
