package lockdb_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/turn"
)

// logging opens the database as one more process, with a log that is kept.
func logging(t *testing.T, url string) (*lockdb.DB, *logbook) {
	t.Helper()
	log := &logbook{}
	return quiet(t, url, func(o *lockdb.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) }), log
}

// TestLeaseDatedFarAheadIsFree has the database's clock go back while a node
// holds a lease. Every node sees at once that the lock is free, and the next
// holder fences the node, which may be alive.
func TestLeaseDatedFarAheadIsFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, r := t.Context(), request(heldByProcess)
		stale := acquire(t, db, r.Key)
		s := db.Store(stale)
		next := chunk(cursorOf(t, s, "orders"), 3)
		next.Cursor = mustCommit(t, s, next)
		next.CommitID = uuid.New()
		other, log := logging(t, url)
		checkHeld := func(want bool) {
			t.Helper()
			held, err := other.Turns().Turn(ctx, "order", r)
			if err != nil || held.Held != want {
				t.Errorf("the look of a standby: %+v, %v", held, err)
			}
			h, err := other.Leases().Holder(ctx, r)
			if err != nil || h.Held != want || h.Held != (h.Left > 0) {
				t.Errorf("the holder: %+v, %v", h, err)
			}
		}
		date(t, url, stale.Term, 2*r.TTL-5*time.Second)
		checkHeld(true)
		date(t, url, stale.Term, time.Hour)
		checkHeld(false)
		fresh := acquire(t, other, r.Key)
		checkHeld(true)
		if n := log.count("Lease taken over", "rule=ttl", "reason=clock-went-back", "from=node-a"); n != 1 {
			t.Errorf("the takeover was told %d times", n)
		}
		at := time.Now()
		for what, write := range map[string]func() error{
			"commit": func() error { _, err := s.Commit(ctx, next); return err },
			"turn": func() error {
				return db.Turns().TakeTurn(ctx, stale, turn.Taken{Type: "order", At: at, Started: at, Finished: at})
			},
			"note":       func() error { return db.Turns().NoteStream(ctx, stale, turn.StreamTaken{Stream: "orders", At: at}) },
			"new cursor": func() error { _, err := s.Cursor(ctx, "more orders"); return err },
		} {
			if err := write(); !errors.Is(err, lock.ErrFenced) {
				t.Errorf("%s of the former holder: %v, want ErrFenced", what, err)
			}
		}
		if renewals, err := other.Leases().Renew(ctx, []lock.Grant{fresh}); err != nil || renewals[0] != lock.Renewed {
			t.Errorf("renewal of the present holder: %v, %v", renewals, err)
		}
	})
}

// TestCommitBringsALeaseBack has the holder write before anybody else comes.
func TestCommitBringsALeaseBack(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 2500} { // One statement, and COPY.
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				g := acquire(t, db, heldByProcess)
				s := db.Store(g)
				date(t, url, g.Term, time.Hour)
				mustCommit(t, s, chunk(cursorOf(t, s, "orders"), n))
				if _, err := db.Leases().Acquire(t.Context(), g.Request); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("acquisition after a commit of the holder: %v", err)
				}
			})
		})
	}
}

// TestRenewalBeforeATakeover has a renewal end while an acquisition already waits
// for the row: what the row says then decides.
func TestRenewalBeforeATakeover(t *testing.T) {
	t.Parallel()
	const dated, prolonged = "created_date = clock_timestamp() AT TIME ZONE 'UTC'", "expired_after = clock_timestamp() AT TIME ZONE 'UTC' + interval '1 h'"
	for name, test := range map[string]struct {
		where   func(*testing.T) string
		ahead   time.Duration
		renewal string
	}{
		"4 columns, expired":     {newPostgres, -time.Hour, dated},
		"4 columns, ahead":       {newPostgres, time.Hour, dated},
		"EXPIRED_AFTER, expired": {withExpiry, -time.Hour, dated + ", " + prolonged},
		"EXPIRED_AFTER, ahead":   {withExpiry, time.Hour, dated},
		"Spring 7":               {withExpiry, -time.Hour, prolonged},
	} {
		for _, mode := range []lock.Mode{"", lock.Exclusive} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				url := test.where(t)
				db := quiet(t, url, func(o *lockdb.Options) { o.AcquireWait = patience })
				g := take(t, db, inMode(heldByProcess, mode))
				date(t, url, g.Term, test.ahead)
				renewal := stranger(t, url, `UPDATE int_lock SET `+test.renewal+` WHERE lock_key = $1`, []string{g.Key})
				attempt := make(chan error, 1)
				go func() {
					_, err := db.Leases().Acquire(t.Context(), g.Request)
					attempt <- err
				}()
				waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
				if err := renewal.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-attempt; !errors.Is(err, lock.ErrHeld) {
					t.Errorf("the lease was renewed, and the acquisition says %v", err)
				}
			})
		}
	}
}

// TestClockThatGoesBackWakes has a node wait for a lock whose holder sleeps.
func TestClockThatGoesBackWakes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		h := holdElsewhere(t, url, time.Minute)
		w := watch(t, url)
		freed := w.watches(t, h)
		date(t, url, h.grant.Term, time.Hour)
		select {
		case <-freed:
		case <-time.After(patience):
			t.Fatal("nobody was woken")
		}
		eventually(t, w.tries(t, heldByProcess))
	})
}

// foreign puts the row of a holder that is not ours into INT_LOCK.
func foreign(t *testing.T, url, key, client string, ahead time.Duration) {
	t.Helper()
	columns, values := "", ""
	if expiryColumn(t, url) != "" {
		columns, values = ", expired_after", ", '2026-01-01 00:01:00'"
	}
	insert := `INSERT INTO int_lock (lock_key, region, client_id, created_date` + columns + `) VALUES ('` + key + `', 'DEFAULT', '` + client + `', '2026-01-01 00:00:00'` + values + `)`
	exec(t.Context(), t, url, map[string]string{"sqlite": insert, "postgres": insert})
	date(t, url, client, ahead)
}

// TestForeignRowsInTheFuture are left alone by every node, and logged once.
func TestForeignRowsInTheFuture(t *testing.T) {
	t.Parallel()
	const key, word = "57509ec6-9b0b-3cf0-8c6f-6e2f0a7e4b11", "The row of a foreign holder lies in the future"
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		db, log := logging(t, url)
		before := acquire(t, db, key) // Ours once, so that obs_lock knows the lock.
		if err := db.Leases().Release(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		meet := func() {
			t.Helper()
			for range 3 {
				if _, err := db.Leases().Acquire(t.Context(), request(key)); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("the lock of a foreign holder: %v", err)
				}
				if s, err := db.Turns().Turn(t.Context(), "order", request(key)); err != nil || !s.Held || s.Holder != "" {
					t.Errorf("the look of a standby: %+v, %v", s, err)
				}
			}
			if _, err := db.Clean(t.Context(), retention()); err != nil {
				t.Error(err)
			}
			if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 1 {
				t.Error("the row of a foreign holder was removed")
			}
		}
		first, second := uuid.NewString(), uuid.NewString()
		foreign(t, url, key, first, 50*time.Second)
		meet()
		if n := log.count(word); n != 0 {
			t.Errorf("a row within two TTLs was told of %d times", n)
		}
		date(t, url, first, 3*time.Hour)
		meet()
		if n := log.count(word, "lock="+key, "client="+first, "level=WARN"); n != 1 {
			t.Errorf("the first holder was told of %d times", n)
		}
		exec(t.Context(), t, url, map[string]string{"sqlite": `DELETE FROM int_lock`, "postgres": `DELETE FROM int_lock`})
		foreign(t, url, key, second, 3*time.Hour)
		meet()
		if n := log.count(word, "client="+second); n != 1 || log.count(word) != 2 {
			t.Errorf("the second holder was told of %d times, all %d times", n, log.count(word))
		}
	})
}

// TestLocksTellWhatIsDatedAhead is what 'observerd status' shows.
func TestLocksTellWhatIsDatedAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		near, far := acquire(t, db, "near"), acquire(t, db, "far")
		now := acquire(t, db, "now")
		date(t, url, near.Term, 45*time.Second)
		date(t, url, far.Term, time.Hour)
		java := uuid.NewString()
		foreign(t, url, "java", java, 3*time.Hour)
		locks, _, err := db.Leases().Locks(t.Context(), nil, 100)
		if err != nil || len(locks) != 4 {
			t.Fatalf("%+v, %v", locks, err)
		}
		about := func(d, want time.Duration) bool { return d <= want && d > want-20*time.Second }
		for _, l := range locks {
			ok := false
			switch l.Term {
			case near.Term:
				ok = about(l.Left, requestTTL+45*time.Second) && about(l.Ahead, 45*time.Second)
			case far.Term:
				ok = l.Left == 0 && about(l.Ahead, time.Hour)
			case now.Term:
				ok = about(l.Left, requestTTL) && l.Ahead == 0
			case java:
				ok = l.Left == 0 && l.Node == "" && about(l.Ahead, 3*time.Hour)
			}
			if !ok {
				t.Errorf("%s is shown with %s left and %s ahead", l.Key, l.Left, l.Ahead)
			}
		}
		if dialectOf(url) == "postgres" {
			exec(t.Context(), t, url, map[string]string{"postgres": `UPDATE int_lock SET created_date = 'infinity' WHERE client_id = $1`}, java)
			if _, _, err := db.Leases().Locks(t.Context(), nil, 100); err != nil {
				t.Errorf("a row for ever: %v", err)
			}
			if s, err := db.Turns().Turn(t.Context(), "order", request("java")); err != nil || !s.Held {
				t.Errorf("a row for ever: %+v, %v", s, err)
			}
		}
	})
}

// TestCleanRemovesLeasesDatedFarAhead removes those that are further ahead than a
// lease may have ended.
func TestCleanRemovesLeasesDatedFarAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		near, far := acquire(t, db, "near"), acquire(t, db, "far")
		date(t, url, near.Term, retention().StaleLocks-time.Minute)
		date(t, url, far.Term, retention().StaleLocks+2*requestTTL+time.Minute)
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM int_lock WHERE lock_key = 'near'`); n != 1 {
			t.Error("a lease was removed whose holder may yet renew it")
		}
		if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 1 {
			t.Errorf("%d leases are left", n)
		}
	})
}
