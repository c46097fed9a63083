package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/source/sqlite"
	"github.com/observerd/observerd/test/kit/simtest"
)

// odd are timestamps, by the form of which they are; empty for none. A text of digits
// is a number in a column of numbers, and a number is a text in one of texts, where it
// has its place among the others as if it were back-dated.
var odd = []struct{ form, value string }{
	{"seconds", "253402300799"}, // "until the end of time"
	{"seconds", "86400"},
	{"milliseconds", "253402300800"},
	{"milliseconds", "1800000000000"},
	{"microseconds", "253402300799999999"},
	{"nanoseconds", "1800000000000000000"},
	{"julian days", "2460000.25"},
	{"text", "'2999-01-01 00:00:00'"},
	{"text", "'2001-01-01T00:00:00Z'"},
	{"", "'soon'"},
	{"", "''"},
	{"", "'#N/A'"},
	{"text", "'1764000000'"},
	{"", "x'00'"},
	{"", "9e999"},
	{"", "-9e999"},
}

// column is of a kind that keeps timestamps of the form, and others; now writes the
// present.
type column struct{ form, kind, now string }

func (f column) String() string { return f.form + " in " + f.kind }

var written = []column{
	{"text", "DATETIME", "datetime('now')"},
	{"text", "TEXT", "strftime('%Y-%m-%dT%H:%M:%fZ')"},
	{"text", "", "date('now')"},
	{"seconds", "INTEGER", "unixepoch()"},
	{"seconds", "REAL", "unixepoch('subsec')"},
	{"milliseconds", "TIMESTAMP", "unixepoch() * 1000"},
	{"milliseconds", "REAL", "unixepoch() * 1000.0"},
	{"microseconds", "INTEGER", "unixepoch() * 1000000"},
	{"nanoseconds", "INTEGER", "unixepoch() * 1000000000"},
	{"julian days", "REAL", "julianday()"},
}

// strays are those of odd that have no place among the others.
func (f column) strays() (values []string) {
	for _, o := range odd {
		digits := strings.Trim(o.value, "'0123456789.") == ""
		if o.form != f.form && (!digits || f.kind != "TEXT" && o.value[0] != '\'') {
			values = append(values, o.value)
		}
	}
	return values
}

// watched is a table whose stream is polled into a memory of its own.
type watched struct {
	t      *testing.T
	writer *sql.DB
	now    string
	src    observer.Source
	db     *observertest.DB
	spec   observer.Spec
	rows   int
}

func watch(t *testing.T, f column) *watched {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.db")
	w := &watched{t: t, writer: openWriter(t, path), now: f.now, db: observertest.NewDB()}
	w.src = open(t, sqlite.Options{URL: "sqlite:" + path})
	exec(t, w.writer, "CREATE TABLE events (id INTEGER PRIMARY KEY, at "+f.kind+"); CREATE INDEX by_time ON events (at, id)")
	w.spec = observer.Spec{Stream: "events", EventType: "Seen", Detect: observer.DetectNew, Query: events(), Start: observer.Start{Began: w.db.Start}}
	return w
}

// add adds rows of the present, and returns their keys.
func (w *watched) add(n int) (keys []string) {
	for range n {
		keys = append(keys, w.insert(w.now))
	}
	return keys
}

func (w *watched) insert(value string) string {
	w.rows++
	exec(w.t, w.writer, fmt.Sprintf("INSERT INTO events VALUES (%d, %s)", w.rows, value))
	return fmt.Sprint(w.rows)
}

func (w *watched) try() error {
	o, err := observer.New(w.spec)
	if err == nil {
		_, err = o.Poll(w.t.Context(), w.src, w.db.Acquire())
	}
	return err
}

func (w *watched) poll() {
	w.t.Helper()
	if err := w.try(); err != nil {
		w.t.Fatalf("Poll: %v", err)
	}
}

// lacks returns which of the keys no event is of.
func (w *watched) lacks(keys ...string) (missing []string) {
	seen := make(map[string]bool)
	for _, e := range w.db.Events("events") {
		seen[e.Subject] = true
	}
	for _, key := range keys {
		if !seen[key] {
			missing = append(missing, key)
		}
	}
	return missing
}

// poison returns the keys of the poison rows.
func (w *watched) poison() string {
	var keys []string
	for _, d := range w.db.Dead("events") {
		keys = append(keys, d.Key)
	}
	return strings.Join(keys, " ")
}

// A row whose timestamp is of another unit or type than the others costs none of
// them: the rows that come after it are seen, and it becomes one poison row.
func TestStrayTimestampHidesNoRow(t *testing.T) {
	t.Parallel()
	for _, form := range written {
		t.Run(form.String(), func(t *testing.T) {
			t.Parallel()
			for _, stray := range form.strays() {
				w := watch(t, form)
				keys := w.add(10)
				w.poll()
				strayed := w.insert(stray)
				w.poll()
				w.poll()
				keys = append(keys, w.add(10)...)
				w.poll()
				if missing := w.lacks(keys...); len(missing) > 0 {
					t.Errorf("%s: no event of %s", stray, missing)
				}
				if w.poison() != strayed {
					t.Errorf("%s: poison rows %q, want it once", stray, w.poison())
				}
			}
		})
	}
}

// One row in a hundred of each odd kind, in any order, from the first on.
func TestStraysAmongMany(t *testing.T) {
	t.Parallel()
	for _, form := range written {
		t.Run(form.String(), func(t *testing.T) {
			t.Parallel()
			seed := simtest.Seed()
			random := rand.New(rand.NewPCG(seed, 0))
			w, strays := watch(t, form), form.strays()
			w.spec.ChunkRows = 50
			var keys []string
			exec(t, w.writer, "PRAGMA synchronous = OFF")
			for range 1000 {
				if i := random.IntN(100); i < len(strays) {
					w.insert(strays[i])
				} else {
					keys = append(keys, w.add(1)...)
				}
				if random.IntN(100) == 0 {
					w.poll()
				}
			}
			w.poll()
			if missing := w.lacks(keys...); len(missing) > 0 {
				t.Errorf("no event of %d of %d rows, the first %s (seed %d)", len(missing), len(keys), missing[0], seed)
			}
			if n, want := len(w.db.Dead("events")), w.rows-len(keys); n != want {
				t.Errorf("%d poison rows of %d odd ones (seed %d)", n, want, seed)
			}
		})
	}
}

// A table that has many of them before its first poll is no broken one.
func TestStraysBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		w := watch(t, column{"seconds", "INTEGER", "unixepoch() - 3600"})
		w.spec.Start.Now = now
		w.spec.StatementTime = time.Nanosecond // each row is gone on from
		for range 50 {
			w.insert("1800000000000")
		}
		keys := w.add(100)
		w.poll()
		w.now = "unixepoch() + 5"
		w.add(3)
		w.poll()
		want := w.rows - 50
		if now {
			want -= len(keys)
		}
		if n := len(w.db.Events("events")); n != want || len(w.db.Dead("events")) != 50 {
			t.Errorf("start now: %t: %d events, want %d; %d poison rows, want 50", now, n, want, len(w.db.Dead("events")))
		}
	}
}

// misled has the horizon of another form of timestamps: that of a row in milliseconds.
type misled struct{ observer.Source }

// Horizon implements [observer.Source].
func (m misled) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	h, err := m.Source.Horizon(ctx, q)
	h.Form, h.Cursor, h.Clock = "", fmt.Sprint(h.Now.Add(-h.Lag).UnixMilli()), fmt.Sprint(h.Now.UnixMilli())
	return h, err
}

// A stream whose mark is of another form sees what it has missed, and not what it was to
// leave out.
func TestBlindStreamIsHealed(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]bool{"from the beginning": false, "from now": true} {
		w := watch(t, column{"seconds", "INTEGER", "unixepoch() - 3600"})
		w.spec.Start.Now = start
		healthy := w.src
		w.src = misled{healthy}
		history := w.add(10)
		stray := w.insert("1800000000000")
		w.poll()
		w.now = "unixepoch() + 5" // the poll has its start in this second
		keys := w.add(10)
		w.poll()
		if missing := w.lacks(keys...); len(missing) != 10 {
			t.Fatalf("%s: it is not blind: no event of %s", name, missing)
		}
		w.src = healthy
		w.poll()
		if missing := w.lacks(keys...); len(missing) > 0 {
			t.Errorf("%s: no event of %s", name, missing)
		}
		if missing := w.lacks(history...); start != (len(missing) == 10) {
			t.Errorf("%s: no event of %s", name, missing)
		}
		if w.poison() != stray {
			t.Errorf("%s: poison rows %q", name, w.poison())
		}
		if form := w.db.Cursor("events").Marks.Form; form != "seconds" {
			t.Errorf("%s: the cursor has the form %q", name, form)
		}
	}
}

// The first row of a table may be the odd one, or the first two: the form stands once
// some rows were observed of it.
func TestFormOfFewRowsDoesNotStand(t *testing.T) {
	t.Parallel()
	w := watch(t, column{"seconds", "INTEGER", "unixepoch()"})
	w.insert("1800000000000")
	w.insert("1800000000000")
	w.poll()
	keys := w.add(3)
	w.poll()
	if missing := w.lacks(keys...); len(missing) > 0 {
		t.Errorf("no event of %s", missing)
	}
	keys = append(keys, w.add(10)...)
	w.poll()
	exec(t, w.writer, "DELETE FROM events WHERE at < 1800000000000")
	w.poll()
	keys = append(keys, w.add(1)...)
	w.poll()
	if missing := w.lacks(keys...); len(missing) > 0 {
		t.Errorf("once the form stands: no event of %s", missing)
	}
}

// "now" cannot be written where no timestamp tells how; it is not the beginning.
func TestStartNowNeedsAForm(t *testing.T) {
	t.Parallel()
	w := watch(t, column{"text", "TEXT", "datetime('now', '-1 hour')"})
	w.spec.Start.Now = true
	w.add(20)
	for range 100 {
		w.insert("'2999-01-01 10:00:00 CET'")
	}
	if err := w.try(); observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), "column at has no timestamp") {
		t.Errorf("Poll: %v, want it refused", err)
	}
	exec(t, w.writer, "DELETE FROM events WHERE at LIKE '2999%'")
	w.poll()
	if n := len(w.db.Events("events")); n != 0 {
		t.Errorf("%d events of rows before the start", n)
	}

	empty := watch(t, column{"text", "TEXT", "datetime('now')"})
	empty.spec.Start.Now = true
	empty.insert("NULL")
	empty.poll()
	keys := empty.add(3)
	empty.poll()
	if missing := empty.lacks(keys...); len(missing) > 0 {
		t.Errorf("of a table that was empty: no event of %s", missing)
	}
}

// One text in another zone must not put the horizon above the others.
func TestHorizonOfTextsInTwoZones(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	writer := openWriter(t, path)
	west := time.FixedZone("", -5*3600)
	s := open(t, sqlite.Options{URL: "sqlite:" + path, Location: west})
	exec(t, writer, `CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT);
		INSERT INTO events VALUES (1, datetime('now', '-5 hours')), (2, strftime('%Y-%m-%dT%H:%M:%SZ'))`)
	h, err := s.Horizon(t.Context(), events())
	if local := h.Now.In(west).Format(time.DateTime); err != nil || s.Compare(h.Clock, local) > 0 {
		t.Errorf("the clock is %s, %v, want none above %s", h.Clock, err, local)
	}
}

// No read of a poll looks at more rows than it returns. Strays are sorted by their keys.
func TestPollsOfAFormUseTheIndex(t *testing.T) {
	t.Parallel()
	for _, form := range written {
		w := watch(t, form)
		w.add(1)
		h, err := w.src.Horizon(t.Context(), events())
		if err != nil || h.Form != form.form {
			t.Errorf("the form of %s is %q, %v", form.now, h.Form, err)
			continue
		}
		q := events()
		q.Form = h.Form
		for _, in := range []observer.Range{
			{Part: observer.PartStray}, {Part: observer.PartStray, Key: "1"}, {Part: observer.PartUndated}, {Part: observer.PartUndated, Key: "1"},
			{Part: observer.PartDated}, {Part: observer.PartDated, From: h.Cursor, Limit: 10},
		} {
			text, err := w.src.(*sqlite.Source).SQL(t.Context(), q, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range strings.Split(text.Full, ";\n") {
				plan := explain(t, w.writer, strings.ReplaceAll(statement, "$1", "1"))
				if strings.Contains(plan, "SCAN") || in.Part != observer.PartStray && strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("%s\n%s", statement, plan)
				}
			}
		}
	}
}
