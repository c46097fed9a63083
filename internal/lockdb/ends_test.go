package lockdb_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// worker is one that works on the log, with what it says and counts.
type worker struct {
	*lockdb.DB
	log     *logbook
	metrics *prometheus.Registry
}

func startWorker(t *testing.T, url, name string) worker {
	t.Helper()
	p := worker{log: &logbook{}, metrics: prometheus.NewRegistry()}
	var err error
	p.DB, err = lockdb.Open(lockdb.Options{
		URL: url, Node: name, Registerer: p.metrics, Logger: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

const wentBackLine = "Event log went back"

// noticed wants the process to have noticed so many times that the log went back.
func (p worker) noticed(t *testing.T, times int) {
	t.Helper()
	if n := p.log.count("level=ERROR", wentBackLine); n != times {
		t.Errorf("said %d times that the log went back, want %d:\n%s", n, times, p.log.text.String())
	}
	want := fmt.Sprintf(`
		# HELP observerd_log_went_back_total Times that this node has found the event log in an earlier state than it knew.
		# TYPE observerd_log_went_back_total counter
		observerd_log_went_back_total %d
	`, times)
	if err := testutil.GatherAndCompare(p.metrics, strings.NewReader(want), "observerd_log_went_back_total"); err != nil {
		t.Error(err)
	}
}

// store binds the process to a lease of its own: others come and go with a restore.
func (p worker) store(t *testing.T) *lockdb.Store {
	t.Helper()
	var g lock.Grant
	eventually(t, func() (err error) { // A failover has ended the connection.
		g, err = p.Leases().Acquire(t.Context(), request(uuid.NewString()))
		return err
	})
	return p.Store(g)
}

// looks lets the process look at the log as polls and relays do, again and again, and
// as they do a minute later.
func (p worker) looks(t *testing.T, streams ...string) {
	t.Helper()
	s := p.store(t)
	for round := range 3 {
		if round == 1 {
			p.Log().Doubt()
		}
		for _, stream := range streams {
			cursorOf(t, s, stream)
		}
		if _, err := p.Log().Backlog(t.Context(), "file"); err != nil {
			t.Fatal(err)
		}
	}
}

// commits lets the process append n events to a stream.
func (p worker) commits(t *testing.T, stream string, n int) observer.Cursor {
	t.Helper()
	s := p.store(t)
	return mustCommit(t, s, chunk(cursorOf(t, s, stream), n))
}

// otherwise appends n events as it would have been without one row: all come under
// other sequences.
func (p worker) otherwise(t *testing.T, stream string, n int) {
	t.Helper()
	s := p.store(t)
	ch := chunk(cursorOf(t, s, stream), n)
	for i := range ch.Events {
		ch.New[i].Key += "-other"
		ch.Events[i].ID = events.NewID(stream, 0, ch.New[i].Key, 1, []byte("h"))
	}
	mustCommit(t, s, ch)
}

// logTables are those of the log, of what it was made from, and of the notes.
var logTables = []string{"obs_cursor", "obs_event", "obs_observed", "obs_sink_offset", "obs_audit"}

// backUp copies the log as it is.
func backUp(t *testing.T, url string) {
	t.Helper()
	for _, table := range logTables {
		text := `CREATE TABLE saved_` + table + ` AS SELECT * FROM ` + table
		exec(t.Context(), t, url, map[string]string{"sqlite": text, "postgres": text})
	}
}

// restore brings the copy back, under the processes that are at work.
func restore(t *testing.T, url string) {
	t.Helper()
	text := map[string]string{}
	for dialect, overriding := range map[string]string{"sqlite": "", "postgres": "OVERRIDING SYSTEM VALUE"} {
		all := "BEGIN;"
		for _, table := range logTables {
			all += fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s %[2]s SELECT * FROM saved_%[1]s;", table, overriding)
		}
		text[dialect] = all + "COMMIT"
	}
	exec(t.Context(), t, url, text)
}

// TestRestoreIsNoticed restores a backup under a process, twice. Each is one line,
// however many streams it takes back and however often they are looked at.
func TestRestoreIsNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		p := startWorker(t, url, "node-a")
		p.commits(t, "orders", 5)
		p.commits(t, "still", 2)
		backUp(t, url)
		for round := range 2 {
			p.commits(t, "orders", 2500)
			p.commits(t, "tasks", 1)
			p.looks(t, "orders", "tasks", "still")
			p.noticed(t, round)
			restore(t, url)
			cursorOf(t, p.store(t), "orders") // The next poll sees it.
			p.noticed(t, round+1)
			p.looks(t, "orders", "tasks", "still")
			p.noticed(t, round+1)
		}
		if n := p.log.count("level=ERROR", wentBackLine, "streams=2", "first=orders", "the stream ends at 5"); n != 2 {
			t.Errorf("said so %d times, want 2:\n%s", n, p.log.text.String())
		}
		report, err := p.Report(t.Context(), nil)
		if err != nil || len(report.WentBack) != 2 {
			t.Fatalf("reported: %+v, %v", report.WentBack, err)
		}
		for i, want := range []string{"tasks: 1 ", "orders: 2505 "} {
			b := report.WentBack[i]
			if got := b.Observer + ": " + b.Detail; !strings.HasPrefix(got, want) || b.Node != "node-a" || b.At.IsZero() {
				t.Errorf("reported %+v, want %q", b, want)
			}
		}
		p.commits(t, "orders", 3) // What was known before is over.
		p.looks(t, "orders", "tasks", "still")
		p.noticed(t, 2)
		restore(t, url)
		if _, err := p.Log().Backlog(t.Context(), "file"); err != nil { // So does the next look of a relay.
			t.Fatal(err)
		}
		p.noticed(t, 3)
		if n := p.log.count("level=ERROR", wentBackLine, "streams=1", `event="8 `); n != 1 {
			t.Errorf("said so %d times of event 8, want once:\n%s", n, p.log.text.String())
		}
	})
}

// TestLogThatHasGrownAgainIsNoticed has another process write as many events, others,
// before this one looks again.
func TestLogThatHasGrownAgainIsNoticed(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(t *testing.T, p worker, url string){
		"a minute later": func(_ *testing.T, p worker, _ string) { p.Log().Doubt() },
		"by a relay, in the middle of what it reads": func(t *testing.T, p worker, _ string) {
			if batch, err := p.Log().After(t.Context(), "orders", 3, 100); err != nil || len(batch) != 9 {
				t.Fatalf("%d events, %v", len(batch), err)
			}
		},
		"on a new connection": func(t *testing.T, p worker, url string) {
			if p.Backend() == "sqlite" {
				p.Log().Doubt() // It has none.
				return
			}
			db, _ := raw(t, url)
			_, err := db.ExecContext(t.Context(), `
				SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
				p := startWorker(t, url, "node-a")
				p.commits(t, "orders", 5)
				backUp(t, url)
				p.commits(t, "orders", 5)
				restore(t, url)
				startWorker(t, url, "node-b").otherwise(t, "orders", 7)
				look(t, p, url)
				eventually(t, func() error { // A session that was ended fails one call.
					_, err := p.Log().Backlog(t.Context(), "file")
					return err
				})
				p.noticed(t, 1)
				p.looks(t, "orders")
				p.noticed(t, 1)
			})
		})
	}
}

// TestRetentionAndResetsAreNotNoticed takes events away as the janitor does, and
// begins a new epoch.
func TestRetentionAndResetsAreNotNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		p, witness := startWorker(t, url, "node-a"), startWorker(t, url, "node-b")
		p.commits(t, "orders", 5)
		if _, err := witness.Log().After(t.Context(), "orders", 0, 100); err != nil {
			t.Fatal(err)
		}
		quiet := func() {
			t.Helper()
			for _, p := range []worker{p, witness} {
				p.looks(t, "orders")
				p.noticed(t, 0)
			}
		}
		quiet()
		for _, o := range []lockdb.ResetOptions{{}, {KeepCursor: true}, {Forget: true}} {
			if err := p.Operations().Reset(t.Context(), "orders", by("alice"), o); err != nil {
				t.Fatal(err)
			}
			quiet()
		}
		if c := p.commits(t, "orders", 3); c.Epoch != 1 || c.LastSeq != 8 {
			t.Fatalf("a new epoch: %+v", c)
		}
		quiet()
		age(t, url, "obs_event", "logged_at")
		r := retention()
		r.Sinks = nil
		if _, err := p.Clean(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_event`); n != 0 {
			t.Fatalf("%d events are left", n)
		}
		quiet()
		p.commits(t, "orders", 3)
		quiet()
	})
}

// TestFileRemembersTheLogOverARestart has a process that knows nothing but the last
// line of a file.
func TestFileRemembersTheLogOverARestart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		p := startWorker(t, url, "node-a")
		p.commits(t, "orders", 5)
		backUp(t, url)
		p.commits(t, "orders", 5)
		batch, err := p.Log().After(t.Context(), "orders", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		last := batch[len(batch)-1]
		fresh := startWorker(t, url, "node-b")
		fresh.Log().Delivered(t.Context(), last)
		fresh.looks(t, "orders")
		fresh.noticed(t, 0)
		restore(t, url)
		fresh = startWorker(t, url, "node-c")
		fresh.Log().Delivered(t.Context(), last)
		fresh.noticed(t, 1)
		fresh.Log().Delivered(t.Context(), last) // In the next term.
		fresh.looks(t, "orders")
		fresh.noticed(t, 1)
		again := startWorker(t, url, "node-d")
		again.Log().Delivered(t.Context(), last)
		again.looks(t, "orders")
		again.noticed(t, 0)
	})
}

// TestFailoversThatTakeNothingBackAreNotNoticed kills a server under a process:
// it comes back itself, then its standby takes over, which has all of it.
func TestFailoversThatTakeNothingBackAreNotNoticed(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby(t)
	p := startCoupled(t, primary, standby)
	p.commits(t, "orders", 5)
	must(t, primary.Stop(t.Context(), pgtest.Immediate))
	must(t, primary.Start(t.Context()))
	eventually(t, func() error { _, err := p.Now(t.Context()); return err })
	p.looks(t, "orders")
	p.commits(t, "orders", 5)
	eventually(t, func() error {
		if n := count(t, standby.URL("postgres"), `SELECT coalesce(max(seq), 0) FROM obs_event`); n != 10 {
			return fmt.Errorf("the standby has %d events", n)
		}
		return nil
	})
	promote(t, primary, standby)
	eventually(t, func() error { _, err := p.Now(t.Context()); return err })
	p.looks(t, "orders")
	p.commits(t, "orders", 5)
	p.looks(t, "orders")
	p.noticed(t, 0)
}

// TestFailoverToAStandbyThatLaggedIsNoticed promotes one that was away for the last
// commits. A process that has seen none of them has nothing to say.
func TestFailoverToAStandbyThatLaggedIsNoticed(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby(t)
	p := startCoupled(t, primary, standby)
	stranger := startCoupled(t, primary, standby)
	p.commits(t, "orders", 5)
	p.commits(t, "tasks", 5)
	eventually(t, func() error {
		if n := count(t, standby.URL("postgres"), `SELECT count(*) FROM obs_event`); n != 10 {
			return fmt.Errorf("the standby has %d events", n)
		}
		return nil
	})
	must(t, standby.Stop(t.Context(), pgtest.Fast))
	p.commits(t, "orders", 5)
	before := p.server(t)
	must(t, primary.Stop(t.Context(), pgtest.Immediate))
	must(t, standby.Start(t.Context()))
	promote(t, nil, standby)
	for _, p := range []worker{stranger, p} {
		eventually(t, func() error { _, err := p.Now(t.Context()); return err })
	}
	if after := p.server(t); after == before {
		t.Errorf("both servers are %q", after)
	}
	stranger.otherwise(t, "orders", 8) // Before the other looks.
	p.looks(t, "orders", "tasks")
	p.commits(t, "orders", 5)
	p.looks(t, "orders", "tasks")
	p.noticed(t, 1)
	stranger.looks(t, "orders", "tasks")
	stranger.noticed(t, 0)
}

// server is the one from which events are read.
func (p worker) server(t *testing.T) string {
	t.Helper()
	_, server, err := p.Log().Read(t.Context(), []events.Range{{Stream: "orders", Last: 1}}, 1<<20)
	must(t, err)
	return server
}

// startCoupled starts a process on both servers, of which the first is the primary.
func startCoupled(t *testing.T, primary, standby *pgtest.Server) worker {
	t.Helper()
	both := changed(t, primary.URL("postgres"), func(u *url.URL) {
		u.Host = u.Host + "," + net.JoinHostPort("127.0.0.1", strconv.Itoa(standby.Port()))
	})
	must(t, open(t, both).Migrate(t.Context()))
	return startWorker(t, both, "node-a")
}

// promote makes the standby the primary; nil is a primary that is down.
func promote(t *testing.T, primary, standby *pgtest.Server) {
	t.Helper()
	if primary != nil {
		must(t, primary.Stop(t.Context(), pgtest.Immediate))
	}
	exec(t.Context(), t, standby.URL("postgres"), map[string]string{"postgres": `SELECT pg_promote()`})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
