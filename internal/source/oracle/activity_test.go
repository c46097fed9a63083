package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What takes a standby, a wrong clock or a night in October is checked on the
// arithmetic alone.
func TestActivityHorizon(t *testing.T) {
	t.Parallel()
	loc := berlin(t)
	now := time.Date(2024, 7, 1, 10, 0, 0, 500_000_000, time.UTC)
	// at is the host's clock, in whole seconds.
	at := func(offset time.Duration) time.Time { return now.Add(offset).Truncate(time.Second) }
	granted := grants{view: "GV$TRANSACTION", identification: identifications[0]}
	primary := activity{grants: granted, now: now, host: at(2 * time.Hour), role: "PRIMARY"}
	with := func(change func(*activity)) activity {
		a := primary
		change(&a)
		return a
	}
	open := at(2 * time.Hour).Add(-10 * time.Minute)
	for name, test := range map[string]struct {
		activity activity
		overlap  time.Duration
		want     string
		exact    bool
	}{
		"nothing open":        {primary, 0, "09:59:55", true},
		"overlap":             {primary, time.Hour, "09:00:00", true},
		"a transaction":       {with(func(a *activity) { a.oldest = open }), 0, "09:49:55", true},
		"an older one":        {with(func(a *activity) { a.oldest = open }), time.Second, "09:49:55", true},
		"of a host in UTC":    {with(func(a *activity) { a.host, a.oldest = at(0), at(0).Add(-time.Minute) }), 0, "09:58:55", true},
		"of a host elsewhere": {with(func(a *activity) { a.host, a.oldest = at(-4*time.Hour), at(-4*time.Hour) }), 0, "09:59:55", true},
		"no grant":            {with(func(a *activity) { a.grants = grants{} }), 0, "09:59:00.5", false},
		"blind":               {with(func(a *activity) { a.blind = true }), 2 * time.Minute, "09:58:00.5", false},
		"FIXED_DATE":          {with(func(a *activity) { a.host = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }), 0, "09:59:00.5", false},
		"FIXED_DATE, seen":    {with(func(a *activity) { a.host, a.oldest = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), open }), 0, "09:59:00.5", false},
		"blind, seen":         {with(func(a *activity) { a.blind, a.oldest = true, open }), 0, "09:49:55", false},
		"a clock that is off": {with(func(a *activity) { a.host = a.host.Add(5 * time.Second) }), 0, "09:59:00.5", false},
		"standby":             {with(func(a *activity) { a.role, a.applied, a.reported = "PHYSICAL STANDBY", time.Hour, true }), 0, "08:59:00.5", false},
		"standby in the dark": {with(func(a *activity) { a.role = "PHYSICAL STANDBY" }), 0, "", false},
	} {
		h := test.activity.horizon(test.overlap, timeLTZ, loc)
		want := test.want
		if want != "" {
			when, err := time.Parse("2006-01-02 15:04:05", "2024-07-01 "+want)
			if err != nil {
				t.Fatal(err)
			}
			want = when.Format(utcLayout)
			if h.Lag != now.Sub(when) {
				t.Errorf("%s: lag %s, want %s", name, h.Lag, now.Sub(when))
			}
		}
		if h.Cursor != want || h.Exact != test.exact {
			t.Errorf("%s: horizon = %+v, want %q, %t", name, h, want, test.exact)
		}
	}
}

// A transaction that began before the clocks went back is as old as it is, in
// whatever zone the host is, and none is held to be older on other days: the
// horizon would jump back with each.
func TestTransactionOverAFold(t *testing.T) {
	t.Parallel()
	loc := berlin(t)
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	fold := time.Date(2024, 10, 27, 1, 0, 0, 0, time.UTC)
	for began := fold.Add(-2 * time.Hour); began.Before(fold.Add(2 * time.Hour)); began = began.Add(10 * time.Minute) {
		for now := began; now.Before(fold.Add(3 * time.Hour)); now = now.Add(10 * time.Minute) {
			for _, host := range []*time.Location{loc, time.UTC, london} {
				reading := func(t time.Time) time.Time {
					_, offset := t.In(host).Zone()
					return t.Add(time.Duration(offset) * time.Second)
				}
				for _, configured := range []*time.Location{loc, time.UTC} {
					a := activity{now: now, host: reading(now), oldest: reading(began)}
					if got := a.started(configured); got.After(began) || got.Before(began.Add(-2*time.Hour)) {
						t.Fatalf("%s at %s (host in %s, configured %s): taken for %s", began, now, host, configured, got)
					}
				}
			}
		}
	}
	summer := time.Date(2024, 7, 2, 0, 30, 0, 0, time.UTC)
	for _, offset := range []time.Duration{-7 * time.Hour, 0, time.Hour, 2 * time.Hour, 9 * time.Hour} {
		a := activity{now: summer, host: summer.Add(offset), oldest: summer.Add(offset - time.Minute)}
		if got := a.started(time.UTC); !got.Equal(summer.Add(-time.Minute)) {
			t.Errorf("a minute ago on a host at %s: taken for %s", offset, summer.Sub(got))
		}
	}
	spring := time.Date(2024, 3, 31, 1, 30, 0, 0, time.UTC)
	gap := activity{now: spring, host: spring.Add(2 * time.Hour), oldest: time.Date(2024, 3, 31, 2, 30, 0, 0, time.UTC)}
	if got := gap.started(loc); got.After(spring) {
		t.Errorf("a reading that no clock has shown is taken for %s", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)
	sound := activity{grants: grants{view: "GV$TRANSACTION", identification: identifications[0]}, now: now, host: now, role: "PRIMARY"}
	if w := sound.warnings(); len(w) > 0 {
		t.Errorf("warnings where all is well: %q", w)
	}
	for want, change := range map[string]func(*activity){
		"SYS.GV_$TRANSACTION":    func(a *activity) { a.view = "" },
		"SYS.V_$INSTANCE":        func(a *activity) { a.view, a.instances = "", true },
		"this very session":      func(a *activity) { a.blind = true },
		"SYS.V_$DATABASE":        func(a *activity) { a.identification = identifications[1] },
		"SYS.V_$DATAGUARD_STATS": func(a *activity) { a.role = "PHYSICAL STANDBY" },
		"less the overlap":       func(a *activity) { a.role, a.reported = "PHYSICAL STANDBY", true },
		"FIXED_DATE":             func(a *activity) { a.host = now.Add(time.Minute) },
	} {
		a := sound
		change(&a)
		if w := a.warnings(); len(w) != 1 || !slices.ContainsFunc(w, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("warnings = %q, want one of %s", w, want)
		}
	}
}

func TestParseInterval(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"+00 00:00:12": 12 * time.Second, "+01 02:03:04": 26*time.Hour + 3*time.Minute + 4*time.Second} {
		if got, ok := parseInterval(text); !ok || got != want {
			t.Errorf("parseInterval(%q) = %s, %t, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soon"} {
		if got, ok := parseInterval(text); ok {
			t.Errorf("parseInterval(%q) = %s", text, got)
		}
	}
}
