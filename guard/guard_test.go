package guard_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/lockstest"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

// database is one with an inbox, and with the table effects, where handlers write.
func database(t *testing.T) string {
	t.Helper()
	return pgtest.NewFrom(t, "guard", func(ctx context.Context, url string) error {
		return pgtest.Execute(ctx, url, guard.SQL(), "CREATE TABLE effects (event_id text, node text)")
	})
}

func manager(t *testing.T, memory *lockstest.Memory, node string) *locks.Manager {
	t.Helper()
	m, err := locks.Open(t.Context(), locks.Options{Provider: memory.Provider(), Region: "payment-lock", Node: node, Subjects: []string{"order"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil && !errors.Is(err, errDown) {
			t.Error(err)
		}
	})
	return m
}

func openDB(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// onBoth runs a test with a guard over database/sql, and with one over pgx. o has the rest of
// the options.
func onBoth(t *testing.T, test func(t *testing.T, url string, o guard.Options)) {
	t.Helper()
	for name, use := range map[string]func(t *testing.T, url string, o *guard.Options){
		"sql": func(t *testing.T, url string, o *guard.Options) { o.DB = openDB(t, url) },
		"pgx": func(t *testing.T, url string, o *guard.Options) {
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			o.Pgx = pool
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			o := guard.Options{Consumer: "payments"}
			use(t, url, &o)
			test(t, url, o)
		})
	}
}

func open(t *testing.T, o guard.Options) *guard.Guard {
	t.Helper()
	if o.Locks == nil {
		o.Locks = manager(t, new(lockstest.Memory), "a")
	}
	g, err := guard.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// effect is a handler that writes a row for the event.
func effect(eventID string) guard.Handler {
	return func(ctx context.Context, tx guard.Tx) error {
		return exec(ctx, tx, "INSERT INTO effects VALUES ($1, 'a')", eventID)
	}
}

func exec(ctx context.Context, tx guard.Tx, query string, args ...any) (err error) {
	if tx.SQL != nil {
		_, err = tx.SQL.ExecContext(ctx, query, args...)
	} else {
		_, err = tx.Pgx.Exec(ctx, query, args...)
	}
	return err
}

// effects is how often handlers have written for the event, which is in the inbox as often.
func effects(t *testing.T, url, eventID string) int {
	t.Helper()
	var written, noted int
	err := openDB(t, url).QueryRowContext(t.Context(),
		"SELECT (SELECT count(*) FROM effects WHERE event_id = $1), (SELECT count(*) FROM obs_inbox WHERE event_id = $1)", eventID).Scan(&written, &noted)
	if err != nil || written != noted {
		t.Fatalf("event %s: %d effects, %d times in the inbox, %v", eventID, written, noted, err)
	}
	return written
}

// does processes an event with one effect.
func does(t *testing.T, g *guard.Guard, eventID string, want guard.Outcome) {
	t.Helper()
	if got, err := g.Do(t.Context(), "4711", eventID, effect(eventID)); got != want || err != nil {
		t.Errorf("event %s: %q, %v, want %q", eventID, got, err, want)
	}
}

// fails processes an event that comes to nothing, and then comes again.
func fails(t *testing.T, url string, g *guard.Guard, f guard.Handler, want error) {
	t.Helper()
	if got, err := g.Do(t.Context(), "4711", "fails", f); got != "" || !errors.Is(err, want) {
		t.Errorf("%q, %v, want %v", got, err, want)
	}
	if n := effects(t, url, "fails"); n != 0 {
		t.Errorf("%d effects after %v", n, want)
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		does(t, g, "1", guard.Applied)
		does(t, g, "1", guard.DuplicateInbox)
		does(t, g, "2", guard.Applied)
		if effects(t, url, "1") != 1 || effects(t, url, "2") != 1 {
			t.Error("not one effect for each event")
		}
		o.Consumer, o.Locks = "other", nil
		if got, err := open(t, o).Do(t.Context(), "4711", "1", func(context.Context, guard.Tx) error { return nil }); got != guard.Applied || err != nil {
			t.Errorf("another consumer: %q, %v", got, err)
		}
	})
}

func TestWhatAHandlerKnows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ string, o guard.Options) {
		g := open(t, o)
		var keys []string
		var fences []int64
		look := func(ctx context.Context, _ guard.Tx) error {
			keys, fences = append(keys, guard.IdempotencyKey(ctx)), append(fences, guard.FenceOf(ctx))
			return errHandler
		}
		for _, id := range []string{"1", "1", "2"} {
			if _, err := g.Do(t.Context(), "4711", id, look); !errors.Is(err, errHandler) {
				t.Fatal(err)
			}
		}
		if keys[0] != keys[1] || keys[1] == keys[2] || len(keys[0]) != 36 || fences[0] >= fences[1] || fences[1] >= fences[2] {
			t.Errorf("idempotency keys %q, fences %d", keys, fences)
		}
		if guard.IdempotencyKey(t.Context()) != "" || guard.FenceOf(t.Context()) != 0 {
			t.Error("a context that is no handler's knows something")
		}
	})
}

var (
	errHandler = errors.New("the gateway said no")
	errDown    = errors.New("down")
)

func TestHandlersThatFail(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		after := func(then func(ctx context.Context, tx guard.Tx) error) guard.Handler {
			return func(ctx context.Context, tx guard.Tx) error {
				if err := effect("fails")(ctx, tx); err != nil {
					return err
				}
				return then(ctx, tx)
			}
		}
		fails(t, url, g, after(func(context.Context, guard.Tx) error { return errHandler }), errHandler)
		fails(t, url, g, after(func(context.Context, guard.Tx) error { return fmt.Errorf("%w: no such order", guard.ErrPermanent) }), guard.ErrPermanent)
		fails(t, url, g, after(func(ctx context.Context, tx guard.Tx) error { return exec(ctx, tx, "ROLLBACK") }), guard.ErrTxEnded)
		fails(t, url, g, after(func(ctx context.Context, tx guard.Tx) error {
			return errors.Join(exec(ctx, tx, "ROLLBACK"), exec(ctx, tx, "BEGIN"))
		}), guard.ErrTxEnded)
		fails(t, url, g, after(func(ctx context.Context, tx guard.Tx) error {
			if tx.SQL != nil {
				return tx.SQL.Rollback()
			}
			return tx.Pgx.Rollback(ctx)
		}), guard.ErrTxEnded)
		_, err := g.Do(t.Context(), "4711", "fails", after(func(context.Context, guard.Tx) error { panic("no such key") }))
		if p, ok := errors.AsType[*guard.PanicError](err); !ok || p.Value != "no such key" || !bytes.Contains(p.Stack, []byte("guard_test.go")) {
			t.Errorf("panic: %v", err)
		}
		fails(t, url, g, after(func(ctx context.Context, tx guard.Tx) error {
			return errors.Join(exec(ctx, tx, "ROLLBACK"), guard.ErrPermanent)
		}), guard.ErrTxEnded)
		// The transaction was aborted, and the handler has not noticed.
		_, err = g.Do(t.Context(), "4711", "fails", after(func(ctx context.Context, tx guard.Tx) error {
			_ = exec(ctx, tx, "SELECT no_such_column")
			return nil
		}))
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "25P02" || errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("aborted transaction: %v", err)
		}
		// The inner one would commit the event, and so undo what the outer one has done.
		again := func(ctx context.Context, _ guard.Tx) error {
			_, err := g.Do(ctx, "4713", "fails", effect("fails"))
			return err
		}
		between := func(ctx context.Context, _ guard.Tx) error {
			_, err := g.Do(ctx, "4712", "other", again)
			return err
		}
		for _, inner := range []guard.Handler{again, between} {
			_, err = g.Do(t.Context(), "4711", "fails", after(inner))
			if wrong, ok := errors.AsType[*guard.InputError](err); !ok || wrong.Field != "event id" {
				t.Errorf("its own event: %v", err)
			}
		}
		if o.Pgx != nil {
			for _, next := range []string{"", "SELECT 2"} {
				_, err = g.Do(t.Context(), "4711", "fails", after(func(ctx context.Context, tx guard.Tx) error {
					_, err := tx.Pgx.Query(ctx, "SELECT 1") // Left open.
					if next != "" {
						err = errors.Join(err, exec(ctx, tx, next))
					}
					return err
				}))
				if err == nil || !strings.Contains(err.Error(), "left rows") || errors.Is(err, guard.ErrUnavailable) {
					t.Errorf("open rows and then %q: %v", next, err)
				}
			}
		}
		does(t, g, "fails", guard.Applied)
	})
}

// TestHandlerThatCommits shows what the guard cannot take back, and says.
func TestHandlerThatCommits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ string, o guard.Options) {
		g := open(t, o)
		_, err := g.Do(t.Context(), "4711", "1", func(ctx context.Context, tx guard.Tx) error { return exec(ctx, tx, "COMMIT") })
		if !errors.Is(err, guard.ErrTxEnded) {
			t.Errorf("handler that commits: %v", err)
		}
	})
}

// TestConstraint has the inbox row come without the key's lock.
func TestConstraint(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		got, err := g.Do(t.Context(), "4711", "1", func(ctx context.Context, tx guard.Tx) error {
			if err := pgtest.Execute(ctx, url, "INSERT INTO obs_inbox VALUES ('payments', '1', '4711', 1)", "INSERT INTO effects VALUES ('1', 'b')"); err != nil {
				return err
			}
			return effect("1")(ctx, tx)
		})
		if got != guard.DuplicateConstraint || err != nil || effects(t, url, "1") != 1 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestOtherConstraint has a unique index that is not the guard's: its conflict is no repeat.
func TestOtherConstraint(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		if err := pgtest.Execute(t.Context(), url, "CREATE UNIQUE INDEX ON obs_inbox (key)"); err != nil {
			t.Fatal(err)
		}
		does(t, g, "1", guard.Applied)
		_, err := g.Do(t.Context(), "4711", "2", effect("2"))
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23505" || effects(t, url, "2") != 0 {
			t.Errorf("conflict of another index: %v", err)
		}
	})
}

// TestPathOfAHandler has another inbox where the handler looks first.
func TestPathOfAHandler(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		if err := pgtest.Execute(t.Context(), url, "CREATE SCHEMA other", "CREATE TABLE other.obs_inbox (LIKE obs_inbox INCLUDING ALL)"); err != nil {
			t.Fatal(err)
		}
		g := open(t, o)
		got, err := g.Do(t.Context(), "4711", "1", func(ctx context.Context, tx guard.Tx) error {
			return errors.Join(effect("1")(ctx, tx), exec(ctx, tx, "SET LOCAL search_path = other"))
		})
		if got != guard.Applied || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		does(t, g, "1", guard.DuplicateInbox)
	})
}

// TestLockTimeout has the key held at another process, and counts what comes of it.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		memory := new(lockstest.Memory)
		l, err := manager(t, memory, "b").Acquire(t.Context(), locks.Descriptor{Subject: "order", Predicate: "writing", Resources: []string{"4711"}})
		if err != nil {
			t.Fatal(err)
		}
		o.Locks, o.Wait = manager(t, memory, "a"), 50*time.Millisecond
		g := open(t, o)
		fails(t, url, g, effect("fails"), guard.ErrLockTimeout)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		does(t, g, "fails", guard.Applied)
		does(t, g, "fails", guard.DuplicateInbox)
		reg := prometheus.NewRegistry()
		o.Consumer = "refunds"
		reg.MustRegister(g.Collector(), open(t, o).Collector())
		const want = `
# HELP payment_lock_failures_total Events that were not committed, by why.
# TYPE payment_lock_failures_total counter
payment_lock_failures_total{consumer="payments",kind="lock_timeout"} 1
# HELP payment_lock_processed_total Events that are committed: applied by this process, or duplicates, by the layer that knew them (seen, inbox, constraint).
# TYPE payment_lock_processed_total counter
payment_lock_processed_total{consumer="payments",layer="",outcome="applied"} 1
payment_lock_processed_total{consumer="payments",layer="inbox",outcome="duplicate"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "payment_lock_failures_total", "payment_lock_processed_total"); err != nil {
			t.Error(err)
		}
		documented(t, reg)
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	})
}

// documented compares the names of the metrics with docs/guard.md.
func documented(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	page, err := os.ReadFile("../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Metrics\n")
	families, err := reg.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := strings.TrimPrefix(f.GetName(), "payment_lock"); !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/guard.md does not know %s", name)
		}
	}
}

func TestStoreThatIsDown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		var memory lockstest.Memory
		o.Locks = manager(t, &memory, "a")
		g := open(t, o)
		memory.Fail(errDown)
		fails(t, url, g, effect("fails"), guard.ErrUnavailable)
		memory.Fail(nil)
		does(t, g, "fails", guard.Applied)
	})
}

// lying are two guards whose lock stores know nothing of each other: both give every lock.
func lying(t *testing.T, o guard.Options) (a, b *guard.Guard) {
	t.Helper()
	return open(t, o), open(t, o)
}

// TestSecondWaitsForTheTransaction has two handlers of one key at a time, as where a lease
// ends under a holder that sleeps: the second one waits in the database, and finds the event.
// That the default is REPEATABLE READ does not matter.
func TestSecondWaitsForTheTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		if err := pgtest.Execute(t.Context(), url, `DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'repeatable read');
		END $$`); err != nil {
			t.Fatal(err)
		}
		a, b := lying(t, o)
		in, out := make(chan struct{}), make(chan struct{})
		commit := sync.OnceFunc(func() { close(out) })
		var work sync.WaitGroup
		defer work.Wait()
		defer commit()
		work.Go(func() {
			got, err := a.Do(t.Context(), "4711", "1", func(ctx context.Context, tx guard.Tx) error {
				close(in)
				<-out
				return effect("1")(ctx, tx)
			})
			if got != guard.Applied || err != nil {
				t.Errorf("the first one: %q, %v", got, err)
			}
		})
		<-in
		work.Go(func() {
			got, err := b.Do(t.Context(), "4711", "1", func(context.Context, guard.Tx) error {
				t.Error("the handler runs twice")
				return nil
			})
			if got != guard.DuplicateInbox || err != nil {
				t.Errorf("the second one: %q, %v", got, err)
			}
		})
		waits(t, url)
		commit()
	})
}

// waits returns when somebody waits for a key in the database.
func waits(t *testing.T, url string) {
	t.Helper()
	db := openDB(t, url)
	waittest.Eventually(t, time.Minute, func() error {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&n)
		if err == nil && n == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
}

func TestWaitInTheDatabaseEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		o.Wait = 100 * time.Millisecond
		a, b := lying(t, o)
		_, err := a.Do(t.Context(), "4711", "1", func(context.Context, guard.Tx) error {
			fails(t, url, b, effect("fails"), guard.ErrLockTimeout)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		// The limit is for the key, and not for what the handler waits for.
		if _, err := a.Do(t.Context(), "4711", "2", func(ctx context.Context, tx guard.Tx) error {
			return exec(ctx, tx, "DO $$ BEGIN ASSERT current_setting('lock_timeout') = '0'; END $$")
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseThatEnds has the lease end under a handler that does not look at its context.
func TestLeaseThatEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		var memory lockstest.Memory
		o.Locks, o.Lease = manager(t, &memory, "a"), time.Second
		g := open(t, o)
		o.Locks = manager(t, &memory, "b")
		other := open(t, o)
		fails(t, url, g, func(ctx context.Context, tx guard.Tx) error {
			if err := effect("fails")(ctx, tx); err != nil {
				return err
			}
			memory.Fail(errDown) // It is not renewed.
			<-ctx.Done()
			memory.Fail(nil)
			does(t, other, "fails", guard.Applied)
			if err := pgtest.Execute(context.WithoutCancel(ctx), url, "DELETE FROM effects", "DELETE FROM obs_inbox"); err != nil {
				return err
			}
			return nil
		}, guard.ErrLost)
	})
}

// TestCallerThatGivesUp is no loss of the lease.
func TestCallerThatGivesUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := g.Do(ctx, "4711", "1", func(ctx context.Context, tx guard.Tx) error {
			cancel(errDown)
			return effect("1")(ctx, tx)
		})
		if !errors.Is(err, errDown) || errors.Is(err, guard.ErrLost) || effects(t, url, "1") != 0 {
			t.Errorf("caller that gives up: %v", err)
		}
	})
}

// TestCommitThatIsNotAnswered cuts the answer to COMMIT off, or COMMIT itself.
func TestCommitThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault netfault.Fault
		want  guard.Outcome
		err   error
	}{
		"the answer is lost": {fault: netfault.Fault{LoseAnswer: true}, want: guard.Applied},
		"it comes late":      {fault: netfault.Fault{Late: 300 * time.Millisecond}, want: guard.Applied},
		"it never comes":     {fault: netfault.Fault{Late: time.Hour}, err: guard.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothBehind(t, func(t *testing.T, url string, proxy *netfault.Proxy, o guard.Options) {
				o.Lease = 2 * time.Second
				var memory lockstest.Memory
				o.Locks = manager(t, &memory, "a")
				g := open(t, o)
				var once atomic.Bool
				proxy.Inspect(func(request []byte) netfault.Fault {
					if !bytes.Contains(bytes.ToLower(request), []byte("commit\x00")) || once.Swap(true) {
						return netfault.Fault{}
					}
					if c.err != nil { // Its lease ends, and it is asked until then.
						memory.Fail(errDown)
					}
					return c.fault
				})
				got, err := g.Do(t.Context(), "4711", "1", effect("1"))
				if got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%q, %v, want %q, %v", got, err, c.want, c.err)
				}
				memory.Fail(nil)
				if c.err == nil && effects(t, url, "1") != 1 {
					t.Error("it was not committed")
				}
			})
		})
	}
}

// TestCommitOfADatabaseThatIsGone has the lease live on, and nobody to ask.
func TestCommitOfADatabaseThatIsGone(t *testing.T) {
	t.Parallel()
	onBothBehind(t, func(t *testing.T, url string, proxy *netfault.Proxy, o guard.Options) {
		o.Lease = time.Second
		g := open(t, o)
		var once atomic.Bool
		proxy.Inspect(func(request []byte) netfault.Fault {
			if !bytes.Contains(bytes.ToLower(request), []byte("commit\x00")) || once.Swap(true) {
				return netfault.Fault{}
			}
			proxy.Refuse(true)
			return netfault.Fault{LoseAnswer: true}
		})
		_, err := g.Do(t.Context(), "4711", "1", effect("1"))
		if !errors.Is(err, guard.ErrUnknown) || errors.Is(err, guard.ErrUnavailable) || errors.Is(err, guard.ErrLost) {
			t.Errorf("commit of a database that is gone: %v", err)
		}
		proxy.Refuse(false)
		if _, err := g.Do(t.Context(), "4711", "1", effect("1")); err != nil || effects(t, url, "1") != 1 {
			t.Errorf("the next attempt: %v", err)
		}
	})
}

// TestCommitThatIsRefused has a constraint that is looked at by COMMIT.
func TestCommitThatIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		if err := pgtest.Execute(t.Context(), url, "ALTER TABLE effects ADD UNIQUE (node) DEFERRABLE INITIALLY DEFERRED", "INSERT INTO effects VALUES ('0', 'a')"); err != nil {
			t.Fatal(err)
		}
		g := open(t, o)
		_, err := g.Do(t.Context(), "4711", "fails", effect("fails"))
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23505" {
			t.Errorf("commit that is refused: %v", err)
		}
		if err := pgtest.Execute(t.Context(), url, "DELETE FROM effects"); err != nil {
			t.Fatal(err)
		}
		does(t, g, "fails", guard.Applied)
	})
}

// onBothBehind is onBoth with a proxy before the database.
func onBothBehind(t *testing.T, test func(t *testing.T, url string, proxy *netfault.Proxy, o guard.Options)) {
	t.Helper()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		proxied, proxy := netfault.StartBefore(t, url)
		if o.DB != nil {
			o.DB = openDB(t, proxied)
		} else {
			pool, err := pgxpool.New(t.Context(), proxied)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			o.Pgx = pool
		}
		test(t, url, proxy, o)
	})
}

func TestDatabaseThatIsCutOff(t *testing.T) {
	t.Parallel()
	onBothBehind(t, func(t *testing.T, url string, proxy *netfault.Proxy, o guard.Options) {
		g := open(t, o)
		fails(t, url, g, func(context.Context, guard.Tx) error {
			proxy.Reset()
			return nil
		}, guard.ErrUnavailable)
		proxy.Refuse(true)
		proxy.Reset()
		fails(t, url, g, effect("fails"), guard.ErrUnavailable)
		proxy.Refuse(false)
		does(t, g, "fails", guard.Applied)
	})
}

// seen fails as long as err is set.
type seen struct {
	err error
	ids map[string]time.Duration
}

func (s *seen) Has(_ context.Context, id string) (bool, error) {
	_, ok := s.ids[id]
	return ok, s.err
}

func (s *seen) Add(_ context.Context, id string, ttl time.Duration) error {
	if s.err == nil {
		s.ids[id] = ttl
	}
	return s.err
}

func TestSeen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		s := &seen{err: errDown, ids: make(map[string]time.Duration)}
		o.Seen = s
		g := open(t, o)
		does(t, g, "1", guard.Applied)
		s.err = nil
		does(t, g, "1", guard.DuplicateInbox)
		does(t, g, "1", guard.DuplicateSeen)
		for id, ttl := range s.ids {
			if len(id) != 36 || ttl != 24*time.Hour {
				t.Errorf("%s is remembered for %s", id, ttl)
			}
		}
		fails(t, url, g, func(context.Context, guard.Tx) error {
			if len(s.ids) != 1 {
				t.Error("an event was remembered before its commit")
			}
			return errHandler
		}, errHandler)
		if len(s.ids) != 1 {
			t.Errorf("remembered %v", s.ids)
		}
	})
}

func TestRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		o.Keep = time.Hour
		g := open(t, o)
		if err := pgtest.Execute(t.Context(), url,
			"INSERT INTO obs_inbox SELECT 'payments', 'old-' || n, 'k', n, now() - interval '61 minutes' FROM generate_series(1, 2500) AS n",
			"INSERT INTO obs_inbox VALUES ('payments', 'young', 'k', 1, now() - interval '59 minutes'), ('other', 'old', 'k', 1, now() - interval '2 hours')"); err != nil {
			t.Fatal(err)
		}
		does(t, g, "1", guard.Applied)
		count := func(want int) {
			t.Helper()
			var n int
			if err := openDB(t, url).QueryRowContext(t.Context(), "SELECT count(*) FROM obs_inbox").Scan(&n); err != nil || n != want {
				t.Errorf("%d rows, %v, want %d", n, err, want)
			}
		}
		count(2503)
		guard.SweepAtOnce(g)
		does(t, g, "1", guard.DuplicateInbox)
		count(3)
	})
}

func TestInput(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string, o guard.Options) {
		g := open(t, o)
		for _, c := range []struct{ key, id, want string }{
			{"", "1", "key is empty"}, {"4711", "", "event id is empty"}, {strings.Repeat("k", 513), "1", "key is empty, longer than 512"},
			{"a\x00", "1", "zero byte"}, {"a", "\xff", "not UTF-8"}, {"47\n11", "1", "control character"}, {" 4711", "1", "blanks around it"}, {"100%", "1", "key has a %"}, {"a::b", "1", "two colons"}, {":a", "1", "two colons"},
		} {
			_, err := g.Do(t.Context(), c.key, c.id, effect("1"))
			if wrong, ok := errors.AsType[*guard.InputError](err); !ok || !strings.Contains(wrong.Error(), c.want) {
				t.Errorf("key %.10q, event %.10q: %v", c.key, c.id, err)
			}
		}
		refuses := func(change func(o *guard.Options), want string) {
			t.Helper()
			wrong := o
			wrong.Locks = manager(t, new(lockstest.Memory), "a")
			change(&wrong)
			if _, err := guard.New(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		refuses(func(o *guard.Options) { o.Locks = nil }, "Options.Locks is missing")
		refuses(func(o *guard.Options) { o.DB, o.Pgx = nil, nil }, "Options.DB and Options.Pgx")
		refuses(func(o *guard.Options) { o.Consumer = "" }, "Options.Consumer is empty")
		refuses(func(o *guard.Options) { o.Lease = time.Millisecond }, "shorter than 1s")
		refuses(func(o *guard.Options) { o.Wait = -1 }, "Options.Wait is negative")
		refuses(func(o *guard.Options) { o.Keep = time.Second }, "Options.Keep is shorter")
		refuses(func(o *guard.Options) { o.Subject = "ordr" }, "ordr")
		refuses(func(o *guard.Options) { o.Consumer = "pay\nments" }, "Options.Consumer")
		if err := pgtest.Execute(t.Context(), url, "ALTER TABLE obs_inbox DROP CONSTRAINT obs_inbox_pkey"); err != nil {
			t.Fatal(err)
		}
		refuses(func(*guard.Options) {}, "its primary key")
		if err := pgtest.Execute(t.Context(), url, "ALTER TABLE obs_inbox RENAME TO gone"); err != nil {
			t.Fatal(err)
		}
		refuses(func(*guard.Options) {}, "CREATE TABLE obs_inbox")
		fails := func(want error) {
			t.Helper()
			if _, err := g.Do(t.Context(), "4711", "1", effect("1")); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		fails(guard.ErrNoTable)
	})
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	url := database(t)
	o := guard.Options{Locks: manager(t, new(lockstest.Memory), "a"), Consumer: "payments", DB: openDB(t, url+separator(url)+"default_transaction_read_only=on")}
	if _, err := guard.New(t.Context(), o); !errors.Is(err, guard.ErrReadOnly) {
		t.Errorf("read-only sessions: %v", err)
	}
}

// TestBehindAPooler has a real PgBouncer that gives each transaction any session, and a user with
// the documented rights, or without one of them.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	url := database(t)
	pooled := func(grants ...string) guard.Options {
		where := bouncertest.Start(t, pgtest.NewRole(t, url, append(grants, "INSERT ON effects")...), bouncertest.Options{Mode: bouncertest.Transaction}).URL()
		where += separator(where) + "default_query_exec_mode=exec"
		return guard.Options{Locks: manager(t, new(lockstest.Memory), "a"), Consumer: "payments", DB: openDB(t, where)}
	}
	o := pooled("SELECT, INSERT, DELETE ON obs_inbox")
	g := open(t, o)
	var work sync.WaitGroup
	var applied atomic.Int32
	for range 4 { // Each manager gives the lock.
		o.Locks = manager(t, new(lockstest.Memory), "b")
		other := open(t, o)
		work.Go(func() {
			for n := range 10 {
				id := fmt.Sprint(n)
				got, err := other.Do(t.Context(), "4711", id, effect(id))
				if err != nil {
					t.Error(err)
				}
				if got == guard.Applied {
					applied.Add(1)
				}
			}
		})
	}
	work.Wait()
	if applied.Load() != 10 {
		t.Errorf("10 events were applied %d times", applied.Load())
	}
	does(t, g, "0", guard.DuplicateInbox)
	for _, grants := range []string{"SELECT, INSERT ON obs_inbox", "SELECT, DELETE ON obs_inbox", "INSERT, DELETE ON obs_inbox"} {
		_, err := guard.New(t.Context(), pooled(grants))
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42501" {
			t.Errorf("%s: %v", grants, err)
		}
	}
}

func separator(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}
