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
)

// logging opens the database as one more process, with a log that is kept.
func logging(t *testing.T, url string) (*lockdb.DB, *logbook) {
	t.Helper()
	log := &logbook{}
	return quiet(t, url, func(o *lockdb.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) }), log
}

// TestLeaseDatedAheadIsNotFree has the database's clock go back while a node holds a lease.
// The look of a standby, as a refusal does, dates it now, and the node goes on.
func TestLeaseDatedAheadIsNotFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, r := t.Context(), request(heldByProcess)
		g := acquire(t, db, r.Key)
		s := db.Store(g)
		other, log := logging(t, url)
		if err := other.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		for _, ahead := range []time.Duration{5 * time.Second, time.Hour} {
			date(t, url, g.Term, ahead)
			if state, err := other.Turns().Turn(ctx, "order", r); err != nil || !state.Held {
				t.Errorf("the look of a standby: %+v, %v", state, err)
			}
			checkDatedNow(t, url, r.Key)
			date(t, url, g.Term, ahead)
			if _, err := other.Leases().Acquire(ctx, r); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("an acquisition: %v", err)
			}
			checkDatedNow(t, url, r.Key)
			mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3))
		}
		expire(ctx, t, url, g)
		acquire(t, other, r.Key)
		if n := log.count("Lease taken over", "rule=ttl", "from=node-a"); n != 1 {
			t.Errorf("the takeover was told %d times", n)
		}
		if _, err := s.Cursor(ctx, "more orders"); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("a write of the former holder: %v, want ErrFenced", err)
		}
	})
}

// TestLeaseDatedAheadIsListed has the view show it, however far ahead: nobody else gets the lock.
func TestLeaseDatedAheadIsListed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			r := inMode("page:"+string(mode), mode)
			r.Descriptor = "lock:" + string(mode) + ":page:reading:1"
			g := take(t, db, r)
			if mode == lock.Exclusive {
				date(t, url, g.Term, time.Hour)
			} else {
				dateHold(t, url, g, time.Hour)
			}
			if n := count(t, url, `SELECT count(*) FROM obs_active_locks WHERE term = '`+g.Term+`' AND left_ms > 3600000`); n != 1 {
				t.Errorf("the %s lease is listed %d times", mode, n)
			}
		}
	})
}

// checkDatedNow checks that the lease of the key is dated within a TTL before the database's
// clock, and ends within a TTL after it.
func checkDatedNow(t *testing.T, url, key string) {
	t.Helper()
	expiry := ""
	if expiryColumn(t, url) != "" {
		expiry = ` AND abs(extract(epoch FROM expired_after - created_date) - o.ttl_ms / 1000.0) < 1`
	}
	text := map[string]string{
		"sqlite":   `created_date BETWEEN strftime('%Y-%m-%d %H:%M:%f000', 'now', '-20 seconds') AND strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
		"postgres": `created_date BETWEEN (clock_timestamp() AT TIME ZONE 'UTC') - interval '20 s' AND (clock_timestamp() AT TIME ZONE 'UTC')` + expiry,
	}[dialectOf(url)]
	if n := count(t, url, `SELECT count(*) FROM int_lock l JOIN obs_lock o ON o.lock_key = l.lock_key AND o.term = l.client_id WHERE l.lock_key = '`+key+`' AND `+text); n != 1 {
		t.Errorf("the lease of %s is not dated now", key)
	}
}

// TestDelayedReleaseDatedAhead has the clock go back while a lock stands that its holder has
// released for later: nobody renews it.
func TestDelayedReleaseDatedAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			r := inMode("delayed "+string(mode), mode)
			g := take(t, db, r)
			if err := general(db).ReleaseAfter(t.Context(), g, time.Second); err != nil {
				t.Fatal(err)
			}
			for _, dated := range []string{"int_lock SET created_date", "obs_hold SET touched_at"} {
				exec(t.Context(), t, url, map[string]string{
					"sqlite":   `UPDATE ` + dated + ` = strftime('%Y-%m-%d %H:%M:%f000', 'now', '+1 hour') WHERE lock_key = ?1`,
					"postgres": `UPDATE ` + dated + ` = (clock_timestamp() AT TIME ZONE 'UTC') + interval '1 hour' WHERE lock_key = $1`,
				}, r.Key)
			}
			r.Mode = lock.Exclusive
			began := time.Now()
			eventually(t, func() error {
				_, err := general(db).Acquire(t.Context(), r)
				return err
			})
			if held := time.Since(began); held < time.Second-5*time.Millisecond {
				t.Errorf("%s: taken after %s", mode, held)
			}
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
				var locks lock.Provider = db.Leases()
				if mode != "" {
					locks = general(db)
				}
				g, err := locks.Acquire(t.Context(), inMode(heldByProcess, mode))
				if err != nil {
					t.Fatal(err)
				}
				date(t, url, g.Term, test.ahead)
				renewal := stranger(t, url, `UPDATE int_lock SET `+test.renewal+` WHERE lock_key = $1`, []string{g.Key})
				attempt := make(chan error, 1)
				go func() {
					_, err := locks.Acquire(t.Context(), g.Request)
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

// datedAt returns the time in the row of a client.
func datedAt(t *testing.T, url, client string) (at string) {
	t.Helper()
	db, _ := raw(t, url)
	err := db.QueryRowContext(t.Context(), `SELECT CAST(created_date AS TEXT) FROM int_lock WHERE client_id = '`+client+`'`).Scan(&at)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestForeignRowsInTheFuture are left alone by every node.
func TestForeignRowsInTheFuture(t *testing.T) {
	t.Parallel()
	const key = "57509ec6-9b0b-3cf0-8c6f-6e2f0a7e4b11"
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		db := quiet(t, url)
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
		client := uuid.NewString()
		for _, ahead := range []time.Duration{50 * time.Second, 3 * time.Hour} {
			exec(t.Context(), t, url, map[string]string{"sqlite": `DELETE FROM int_lock`, "postgres": `DELETE FROM int_lock`})
			foreign(t, url, key, client, ahead)
			was := datedAt(t, url, client)
			meet()
			if now := datedAt(t, url, client); now != was {
				t.Errorf("the row was dated %s, and is %s", was, now)
			}
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
				ok = about(l.Left, requestTTL) && about(l.Ahead, 45*time.Second)
			case far.Term:
				ok = about(l.Left, requestTTL) && about(l.Ahead, time.Hour)
			case now.Term:
				ok = about(l.Left, requestTTL) && l.Ahead == 0
			case java:
				ok = l.Left == 0 && l.Holder == "" && about(l.Ahead, 3*time.Hour)
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

// TestCleanLeavesLeasesDatedAhead: their holders may live.
func TestCleanLeavesLeasesDatedAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		g := acquire(t, db, "far")
		date(t, url, g.Term, 10*retention().StaleLocks)
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Leases().Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Renewed {
			t.Errorf("renewal: %v, %v", got, err)
		}
	})
}
