package springtest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // This machine may have no zones.

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(pgtest.Wrap(m)) }

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func repository(t *testing.T, o springtest.Options) *springtest.Repository {
	t.Helper()
	r, err := springtest.NewRepository(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Disconnect(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// want checks an answer that must be free of errors.
func want(t *testing.T, what string, expected, ok bool, err error) {
	t.Helper()
	if err != nil || ok != expected {
		t.Errorf("%s: %v, %v; want %v", what, ok, err, expected)
	}
}

// Vectors are the answers of the libraries themselves (`make interop-spring`
// compares them again): spring6 and spring7 agree in all.
var vectors = map[string]struct{ five, since6 string }{
	"foo":                                  {"acbd18db-4cc2-385c-adef-654fccc4a4d8", ""},
	"":                                     {"d41d8cd9-8f00-3204-a980-0998ecf8427e", ""},
	"poll:orders":                          {"80446051-8331-358a-a4ec-f9b625d7cee6", ""},
	"ünï→":                                 {"0957775c-4918-315c-ab75-a646257d37f7", ""},
	"ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8": {"acbd18db-4cc2-385c-adef-654fccc4a4d8", ""},
	// Five numbers with dashes between were a UUID up to 5.5.
	"1-1-1-1-1": {"00000001-0001-0001-0001-000000000001", "cabc94a3-2090-35ec-83d5-b6dfd016e1b1"},
}

func TestKeysAreThoseOfTheLibraries(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		if v.since6 == "" {
			v.since6 = v.five
		}
		for g, key := range map[springtest.Generation]string{springtest.Spring5: v.five, springtest.Spring6: v.since6, springtest.Spring7: v.since6} {
			if got := g.Key(name); got != key {
				t.Errorf("%s: the key of %q is %s, want %s", g, name, got, key)
			}
		}
		if got := lockdb.Key(lockdb.KeySpring, name); got != v.since6 {
			t.Errorf("our key of %q is %s, want %s", name, got, v.since6)
		}
	}
}

func TestRegistriesExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			url := pgtest.New(t)
			execute(t, url, g.Table())
			var inside, entered int // guarded by the lock that is tested
			var work sync.WaitGroup
			for range 4 {
				registry := springtest.NewRegistry(repository(t, springtest.Options{URL: url, Generation: g, TTL: time.Minute}))
				work.Go(func() {
					for range 25 {
						for ok := false; !ok; {
							var err error
							if ok, err = registry.TryLock(t.Context(), "x", 10*time.Second); err != nil {
								t.Errorf("lock: %v", err)
								return
							}
						}
						if inside++; inside != 1 {
							t.Error("two at a time")
						}
						entered++
						inside--
						if err := registry.Unlock(t.Context(), "x"); err != nil {
							t.Errorf("unlock: %v", err)
						}
					}
				})
			}
			work.Wait()
			if entered != 100 {
				t.Errorf("%d of 100 sections", entered)
			}
		})
	}
}

// TestSameClientIDIsReentrant pins what two applications with a fixed client id
// do to each other.
func TestSameClientIDIsReentrant(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	execute(t, url, springtest.Spring6.Table())
	for range 2 {
		r := repository(t, springtest.Options{URL: url, Generation: springtest.Spring6, ID: "dockerAPI"})
		ok, err := r.Acquire(t.Context(), "k")
		want(t, "acquire", true, ok, err)
	}
}

// TestGenerationsOnOneTable is why mixed generations are refused: what each
// does on the other's table, and on one that is migrated by halves.
func TestGenerationsOnOneTable(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T, statements ...string) (six, seven *springtest.Repository, url string) {
		t.Helper()
		url = pgtest.New(t)
		execute(t, url, statements...)
		six = repository(t, springtest.Options{URL: url, Generation: springtest.Spring6})
		seven = repository(t, springtest.Options{URL: url, Generation: springtest.Spring7})
		return six, seven, url
	}
	t.Run("7 with four columns fails", func(t *testing.T) {
		t.Parallel()
		_, seven, _ := setup(t, springtest.Spring6.Table())
		if _, err := seven.Acquire(t.Context(), "k"); err == nil {
			t.Error("nothing failed")
		}
	})
	t.Run("6 with EXPIRED_AFTER never acquires and says nothing", func(t *testing.T) {
		t.Parallel()
		six, _, _ := setup(t, springtest.Spring7.Table())
		ok, err := six.Acquire(t.Context(), "k")
		want(t, "acquire", false, ok, err)
	})
	t.Run("5 with EXPIRED_AFTER fails", func(t *testing.T) {
		t.Parallel()
		_, _, url := setup(t, springtest.Spring7.Table())
		five := repository(t, springtest.Options{URL: url, Generation: springtest.Spring5})
		if _, err := five.Acquire(t.Context(), "k"); err == nil {
			t.Error("nothing failed")
		}
	})
	t.Run("a default lets 7 take at once what 6 holds", func(t *testing.T) {
		t.Parallel()
		six, seven, _ := setup(t, springtest.Spring6.Table(), `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL DEFAULT '1970-01-01'`)
		ok, err := six.Acquire(t.Context(), "k")
		want(t, "6 acquires", true, ok, err)
		ok, err = seven.Acquire(t.Context(), "k")
		want(t, "7 takes it", true, ok, err)
	})
	t.Run("a null keeps 7 out for ever", func(t *testing.T) {
		t.Parallel()
		six, seven, url := setup(t, springtest.Spring6.Table(), `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP`)
		ok, err := six.Acquire(t.Context(), "k")
		want(t, "6 acquires", true, ok, err)
		execute(t, url, `UPDATE INT_LOCK SET CREATED_DATE = '2000-01-01'`)
		ok, err = seven.Acquire(t.Context(), "k")
		want(t, "7 takes what expired in 2000", false, ok, err)
	})
	t.Run("6 takes what 7 has renewed", func(t *testing.T) {
		t.Parallel()
		six, seven, url := setup(t, springtest.Spring6.Table(), `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL DEFAULT '1970-01-01'`)
		ok, err := seven.Acquire(t.Context(), "k")
		want(t, "7 acquires", true, ok, err)
		execute(t, url, `UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE - interval '11 s'`)
		ok, err = seven.Renew(t.Context(), "k")
		want(t, "7 renews", true, ok, err)
		ok, err = six.Acquire(t.Context(), "k")
		want(t, "6 takes it", true, ok, err)
	})
}

// TestZonesOfTheJVM shows what is written: by 5 the local time, by the releases
// of 6 that go through java.sql.Timestamp an hour too much in the gap of
// daylight saving time, by 7 UTC.
func TestZonesOfTheJVM(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		generation springtest.Generation
		utc, wrote string
	}{
		{springtest.Spring5, "2026-07-01 10:00:00", "2026-07-01 12:00:00"},
		{springtest.Spring6, "2026-07-01 10:00:00", "2026-07-01 10:00:00"},
		{springtest.Spring6, "2026-03-29 02:00:01", "2026-03-29 03:00:01"},
		{springtest.Spring6, "2026-03-29 03:00:01", "2026-03-29 03:00:01"},
		{springtest.Spring6, "2026-10-25 02:30:00", "2026-10-25 02:30:00"},
		{springtest.Spring7, "2026-03-29 02:00:01", "2026-03-29 02:00:01"},
	} {
		now, err := time.Parse(time.DateTime, test.utc)
		if err != nil {
			t.Fatal(err)
		}
		url := pgtest.New(t)
		execute(t, url, test.generation.Table())
		r := repository(t, springtest.Options{URL: url, Generation: test.generation, Zone: berlin, Clock: func() time.Time { return now }})
		ok, err := r.Acquire(t.Context(), "k")
		want(t, "acquire", true, ok, err)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		var wrote time.Time
		err = conn.QueryRow(t.Context(), `SELECT CREATED_DATE FROM INT_LOCK`).Scan(&wrote)
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := wrote.Format(time.DateTime); got != test.wrote {
			t.Errorf("%s at %s UTC has written %s, want %s", test.generation, test.utc, got, test.wrote)
		}
	}
}

func TestUnlockTellsOfALossSince6(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		url := pgtest.New(t)
		execute(t, url, g.Table())
		registry := springtest.NewRegistry(repository(t, springtest.Options{URL: url, Generation: g}))
		ok, err := registry.TryLock(t.Context(), "x", 0)
		want(t, "lock", true, ok, err)
		execute(t, url, `DELETE FROM INT_LOCK`)
		if err := registry.Unlock(t.Context(), "x"); errors.Is(err, springtest.ErrLost) == (g == springtest.Spring5) {
			t.Errorf("%s: unlock of a lock that is gone: %v", g, err)
		}
	}
}
