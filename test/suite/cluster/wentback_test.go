package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRestoreUnderANodeIsNoticed takes the coordination database of a node at work back to
// an earlier state, in which a former process held the leases. The node says so once,
// and so does the status; its next process, which knows the end of the sink's file, has
// nothing to add. The log tells all of the source again, and the file has all of the log.
func TestRestoreUnderANodeIsNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		a := h.start(t, "a", settings{}).ready(t)
		const line, counter = "Event log went back", "observerd_log_went_back_total"
		orders := func(prefix string) {
			source.orders(t, prefix, 10)
			eventually(t, func() error { return h.stored(prefix + "-0010") })
		}
		orders("before")
		m.exec(t, saving(m.dialect))
		m.exec(t, draws(m.dialect))
		a.stops(t)
		a = h.start(t, "a", settings{}).ready(t) // Its claim of the sink is undone.
		orders("undone")
		if n := a.Log.Count(line); n != 0 {
			t.Fatalf("said %d times that the log went back, which it did not", n)
		}
		m.exec(t, restoring(m.dialect))
		orders("after")
		eventually(t, func() error { return a.counted(t, counter) })
		orders("later")
		if n := a.Log.Count(line, `"level":"ERROR"`, `"first":"orders"`); n != 1 {
			t.Errorf("said %d times that the log went back, want once", n)
		}
		if n, err := a.metric(t, counter); err != nil || n != 1 {
			t.Errorf("counted %v times that the log went back, want once: %v", n, err)
		}
		eventually(t, func() error { // The node reports every few seconds.
			said, err := h.status(t, "a")
			if err == nil && !strings.Contains(said, "EVENT LOG WENT BACK\nOBSERVER") {
				err = fmt.Errorf("the status does not say that the log went back:\n%s", said)
			}
			return err
		})
		a.stops(t)
		b := h.start(t, "b", settings{}).ready(t)
		orders("last")
		if n := b.Log.Count(line); n != 0 {
			t.Errorf("the next process said so %d times", n)
		}
		checkDelivered(t, m, h.sink(), source.rows(t))
	})
}

// restored are the tables that go back. On SQLite the tokens are one of them.
func restored(dialect string) []string {
	tables := []string{"obs_cursor", "obs_event", "obs_observed", "obs_sink_offset", "obs_lock", "int_lock"}
	if dialect == "sqlite" {
		tables = append(tables, "obs_fence")
	}
	return tables
}

// saving copies the tables, and the last token, as they are at one moment: a commit that
// came between two copies would be in one of them alone.
func saving(dialect string) (statements string) {
	begin := map[string]string{"sqlite": "BEGIN IMMEDIATE;", "postgres": "BEGIN ISOLATION LEVEL REPEATABLE READ;"}[dialect]
	for _, table := range restored(dialect) {
		statements += fmt.Sprintf("CREATE TABLE saved_%[1]s AS SELECT * FROM %[1]s;", table)
	}
	if dialect == "postgres" {
		statements += "CREATE TABLE saved_obs_fence AS SELECT last_value FROM obs_fence;"
	}
	return begin + statements + "COMMIT"
}

// draws draws as many tokens as turns do in minutes.
func draws(dialect string) string {
	return map[string]string{
		"sqlite":   "UPDATE obs_fence SET last_value = last_value + 5000",
		"postgres": "SELECT setval('obs_fence', nextval('obs_fence') + 5000)",
	}[dialect]
}

// restoring brings the copies back. A commit locks the cursors first, too.
func restoring(dialect string) string {
	statements := map[string]string{
		"sqlite":   "BEGIN IMMEDIATE;",
		"postgres": "BEGIN; LOCK TABLE obs_cursor; SELECT setval('obs_fence', last_value) FROM saved_obs_fence;",
	}[dialect]
	for _, table := range restored(dialect) {
		statements += fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM saved_%[1]s;", table)
	}
	return statements + "COMMIT"
}

// stored complains unless the sink's file has the order.
func (h host) stored(id string) error {
	text, err := os.ReadFile(h.sink())
	if err == nil && !bytes.Contains(text, []byte(`"`+id+`"`)) {
		err = fmt.Errorf("%s is not delivered yet", id)
	}
	return err
}
