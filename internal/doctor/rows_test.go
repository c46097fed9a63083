package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/test/kit/waittest"
)

// utc is the clock of a Java node that is so far ahead, as an expression.
func utc(ahead string) string {
	return `clock_timestamp() AT TIME ZONE 'UTC' + interval '` + ahead + `'`
}

// held is the row of a Java node that has just taken the lock of the orders.
func held(ahead string) string {
	return fmt.Sprintf(`INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE) VALUES ('DEFAULT', '%s', '%s', %s)`, orderKey, javaA, utc(ahead))
}

// heldSeven is that of Spring 7, with its expiry.
func heldSeven(ahead, expires string) string {
	return fmt.Sprintf(`INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('DEFAULT', '%s', '%s', %s, %s)`,
		orderKey, javaA, utc(ahead), utc(expires))
}

// TestRowsOfClocksThatAreAhead has rows that were written by Java nodes whose
// clock, or zone, is wrong.
func TestRowsOfClocksThatAreAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, row string
		severity          doctor.Severity
		parts             []string
	}{
		{"in time", springSix, held("0"), doctor.OK, nil},
		{"some seconds", springSix, held("20 seconds"), doctor.Warning, []string{"lock order-observer-poll (key 57509ec6-", "ahead of the database's clock", "NTP", "DELETE FROM INT_LOCK"}},
		{"longer than half the TTL", springSix, held("50 seconds"), doctor.Problem, []string{"longer than the TTL"}},
		{"two hours", springSix, held("2 hours"), doctor.Problem, []string{"2h", "Spring Integration up to 5.5", "-Duser.timezone=UTC"}},
		{"five hours and a half", springSix, held("5 hours 30 minutes"), doctor.Problem, []string{"5h30m", "time zone"}},
		{"one hour, by summer time", springSix, held("1 hour"), doctor.Problem, []string{"1h", "6.1.8 to 6.5.8", "upgrade to 7.0.5 or later"}},
		{"no zone", springSix, held("17 minutes"), doctor.Problem, []string{"Synchronize the clock"}},
		{"for ever", springSix, `INSERT INTO INT_LOCK VALUES ('` + orderKey + `', 'DEFAULT', '` + javaA + `', 'infinity')`, doctor.Problem, []string{"days ahead"}},
		{"7, in time", springSeven, heldSeven("0", "60 seconds"), doctor.OK, nil},
		{"7, two hours", springSeven, heldSeven("2 hours", "2 hours 60 seconds"), doctor.Problem, []string{"was ahead when it made the row", "time zone"}},
		{"7, renewed by summer time", springSeven, heldSeven("-10 minutes", "1 hour 60 seconds"), doctor.Problem, []string{"EXPIRED_AFTER is 1h", "time zone"}},
		{"7, absurd TTL", springSeven, heldSeven("0", "10 days"), doctor.Problem, []string{"EXPIRED_AFTER is 10 days away", "expireAfter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := postgres(t, c.script)
			p.migrate(t)
			p.exec(t, c.row)
			found := p.examine(t, 0)
			says(t, found, "rows-in-the-future", c.severity, c.parts...)
			if c.severity == doctor.OK {
				healthy(t, found, superuser, "nodes")
			}
		})
	}
}

// TestOurRowsInTheFuture means that the database's clock went back.
func TestOurRowsInTheFuture(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		if _, err := p.observerd(t).Leases().Acquire(t.Context(), orderRequest(p)); err != nil {
			t.Fatal(err)
		}
		healthy(t, p.examine(t, 0), superuser, "nodes")
		for _, ahead := range []string{"90 seconds", "10 minutes"} {
			if p.url[:6] == "sqlite" {
				p.exec(t, `UPDATE int_lock SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now', '+`+ahead+`')`)
			} else {
				p.exec(t, `UPDATE int_lock SET created_date = `+utc(ahead))
			}
			says(t, p.examine(t, 0), "rows-in-the-future", doctor.Problem, "though a node of observerd wrote it (node-a)", "that clock has gone back", "its lease ends a TTL later")
		}
	})
}

// TestRowsOfClocksThatAreBehind watches Java nodes at work: only of a row that
// is seen to be written can it be told that it was too old from the start.
func TestRowsOfClocksThatAreBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, behind string
		severity             doctor.Severity
		parts                []string
	}{
		{"in time", springSix, "0 minutes", doctor.OK, []string{"the clocks of foreign holders are right"}},
		{"some seconds", springSix, "-20 seconds", doctor.Warning, []string{"holder " + javaA, "free that much too early", "NTP"}},
		{"longer than the TTL", springSix, "-100 seconds", doctor.Problem, []string{"it excludes nobody"}},
		{"five hours", springSix, "-5 hours", doctor.Problem, []string{"it excludes nobody", "5h", "Spring Integration up to 5.5"}},
		{"7, in time", springSeven, "0 minutes", doctor.OK, []string{"the clocks of foreign holders are right"}},
		{"7, five hours", springSeven, "-5 hours", doctor.Problem, []string{"it excludes nobody", "time zone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := postgres(t, c.script)
			p.migrate(t)
			row := held(c.behind)
			if c.script == springSeven {
				row = heldSeven(c.behind, c.behind+" 60 seconds")
			}
			found := p.watched(t, func() func() time.Duration { return p.work(t, row) }, takenFirst)
			says(t, found, "rows-in-the-past", c.severity, c.parts...)
			says(t, found, "holders", doctor.Note, "1 foreign client id held 1 lock")
			if c.severity == doctor.OK {
				healthy(t, found, superuser, "nodes")
			}
		})
	}
}

// work has a Java node take its lock and give it back, again and again. stop
// returns how long it took to take it, at most.
func (p *subject) work(t *testing.T, take string) (stop func() (longest time.Duration)) {
	t.Helper()
	return again(t, func(ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		if _, err := p.db.ExecContext(t.Context(), take); err != nil {
			return 0, err
		}
		took = time.Since(began)
		pause(ctx, 80*time.Millisecond)
		_, err = p.db.ExecContext(t.Context(), `DELETE FROM INT_LOCK WHERE CLIENT_ID = '`+javaA+`'`)
		pause(ctx, 80*time.Millisecond)
		return took, err
	})
}

// again has something done until stop is called, which waits for the end of it.
func again(t *testing.T, do func(ctx context.Context) (took time.Duration, err error)) (stop func() (longest time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		defer func() { done <- longest }()
		for ctx.Err() == nil {
			took, err := do(ctx)
			if err != nil {
				t.Errorf("a Java node at work: %v", err)
				return
			}
			longest = max(longest, took)
		}
	}()
	return func() time.Duration {
		cancel()
		return <-done
	}
}

// watched examines the database while a Java node is at work. It does so again
// when nothing was seen of the work, or when a row took so long to come that it
// was old by then, as on a machine that stands still.
func (p *subject) watched(t *testing.T, begin func() (stop func() (longest time.Duration)), taken func([]status.Sighting) bool) []doctor.Finding {
	t.Helper()
	var found status.Examination
	waittest.Eventually(t, time.Minute, func() error {
		stop := begin()
		var err error
		found, err = examine.Run(t.Context(), examine.Options{URL: p.url, Watch: time.Second, Every: 50 * time.Millisecond})
		switch longest := stop(); {
		case err != nil:
			t.Fatal(err)
		case longest > time.Second:
			return fmt.Errorf("the lock was taken within %s", longest)
		case !taken(found.Sightings):
			return errors.New("the lock was not seen being taken")
		}
		return nil
	})
	return doctor.Judge(found, p.want)
}

// takenOnce reports whether a lock was seen being taken.
func takenOnce(all []status.Sighting) bool {
	return slices.ContainsFunc(all, func(s status.Sighting) bool { return s.Inserted })
}

// takenFirst reports whether that was the first write that was seen. What comes after a
// look that was too slow for what came before may be a renewal, for all the doctor knows.
func takenFirst(all []status.Sighting) bool {
	i := slices.IndexFunc(all, func(s status.Sighting) bool { return s.Written })
	return i >= 0 && all[i].Inserted
}

// TestOneLookIsNoWatch: nothing was watched, however long the look took.
func TestOneLookIsNoWatch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		found, err := examine.Run(t.Context(), examine.Options{URL: p.url, Every: time.Nanosecond})
		if err != nil || found.Watched != 0 {
			t.Errorf("one look is a watch of %s: %v", found.Watched, err)
		}
	})
}

// TestStaleRowsAreNoFault covers what a dead Java node leaves behind, and one
// that might be alive in another zone.
func TestStaleRowsAreNoFault(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	p.exec(t, held("-3 days -7 minutes"))
	found := p.examine(t, 0)
	healthy(t, found, superuser, "nodes")
	says(t, found, "rows-in-the-past", doctor.Note, "is 3 days old", "Anyone who wants the lock takes it")
	p.exec(t, `DELETE FROM INT_LOCK`, held("-5 hours"))
	says(t, p.examine(t, 0), "rows-in-the-past", doctor.Note, "perhaps by a time zone", "--watch 1m")
}
