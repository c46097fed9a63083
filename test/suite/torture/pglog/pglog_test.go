package pglog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
	"github.com/observerd/observerd/test/suite/torture/pglog"
)

// begins is the log of a read's transaction, up to its first statement.
func begins(at, user, session string) string {
	return line(at, user, session, `"application_name":"observerd source a","message":"execute <unnamed>: BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"`) +
		line(at, user, session, `"application_name":"observerd source a","message":"execute <unnamed>: SET LOCAL application_name = 'observerd source orders'"`) +
		line(at, user, session, `"application_name":"observerd source orders","message":"execute <unnamed>: LOCK TABLE public.orders IN ACCESS SHARE MODE"`)
}

func line(at, user, session, rest string) string {
	return `{"timestamp":"2026-11-21 12:00:` + at + ` UTC","user":"` + user + `","session_id":"` + session + `","backend_type":"client backend",` + rest + "}\n"
}

func parse(t *testing.T, log string) []history.Poll {
	t.Helper()
	polls, err := pglog.Polls(strings.NewReader(log),
		func(application string) (string, bool) { return strings.CutPrefix(application, "observerd source ") },
		func(role string) (string, bool) { return strings.CutPrefix(role, "poller_") })
	if err != nil {
		t.Fatal(err)
	}
	return polls
}

func TestPolls(t *testing.T) {
	t.Parallel()
	begins, late := begins("01.250", "poller_a", "s1"), begins("01.300", "poller_a", "s2")
	const started = `{"timestamp":"2026-11-21 12:00:09.000 UTC","session_id":"s9","backend_type":"startup","message":"database system was interrupted; last known up at x"}` + "\n"
	for name, tc := range map[string]struct {
		log   string
		end   string // seconds
		whole bool
	}{
		"ends with its transaction":    {begins + line("02.500", "poller_a", "s1", `"message":"statement: COMMIT"`), "02.5", true},
		"ends with its connection":     {begins + line("03.000", "poller_a", "s1", `"message":"disconnection: session time: 0:00:02"`), "03", false},
		"meets an error":               {begins + line("02.000", "poller_a", "s1", `"error_severity":"ERROR","message":"canceling statement"`) + line("02.100", "poller_a", "s1", `"message":"statement: COMMIT"`), "02.1", false},
		"ends with its server":         {begins + started, "09", false},
		"is still open":                {begins + line("04.000", "other", "s2", `"message":"statement: SELECT 1"`), "04", false},
		"half a line of a dead server": {begins + `"half a li{"timestamp":"2026` + "\n" + line("02.500", "poller_a", "s1", `"message":"statement: COMMIT"`), "02.5", true},
		"half a record before a whole": {begins + `{"timestamp":"2026` + line("02.500", "poller_a", "s1", `"message":"statement: COMMIT"`), "02.5", true},
		"half a line at the end":       {begins + line("02.500", "poller_a", "s1", `"message":"statement: COMMIT"`) + `{"timestamp":"2026`, "02.5", true},
		"a late line of a dead server": {begins + started + late, "09", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polls := parse(t, tc.log)
			if len(polls) != 1 {
				t.Fatalf("%d polls", len(polls))
			}
			end, err := time.Parse("05.999", tc.end)
			if err != nil {
				t.Fatal(err)
			}
			p := polls[0]
			if p.Stream != "orders" || p.Node != "a" || p.Begin.Nanosecond() != 250e6 || p.Whole != tc.whole ||
				p.End.Second() != end.Second() || p.End.Nanosecond() != end.Nanosecond() {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestSingleStatements are reads without a transaction of their own. The look before them, and
// the time of other steps of the protocol, are none.
func TestSingleStatements(t *testing.T) {
	t.Parallel()
	const orders = `"application_name":"observerd source orders",`
	say := func(at, message string) string { return line(at, "poller_a", "s1", orders+message) }
	look := say("01.000", `"message":"execute <unnamed>: BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"`) +
		say("01.001", `"message":"execute observerd_look: SELECT 1"`) + say("01.002", `"message":"duration: 1 ms"`) +
		say("01.003", `"message":"execute <unnamed>: COMMIT"`) + say("01.004", `"message":"duration: 1 ms"`)
	read := say("01.250", `"message":"execute observerd_read: SELECT q.id"`)
	for name, tc := range map[string]struct {
		log, end string
		whole    bool
	}{
		"whole":          {look + read + say("01.500", `"message":"duration: 250 ms"`) + look, "01.5", true},
		"meets an error": {look + read + say("01.500", `"error_severity":"ERROR","message":"canceling statement"`) + say("01.600", `"message":"duration: 1 ms"`), "01.5", false},
		"cut off":        {look + read + say("01.700", `"message":"disconnection: session time: 0:00:02"`), "01.7", false},
	} {
		polls := parse(t, tc.log)
		if len(polls) != 1 || polls[0].Begin.Nanosecond() != 250e6 || polls[0].End.Format("05.9") != tc.end || polls[0].Whole != tc.whole || polls[0].Stream != "orders" {
			t.Errorf("%s: %+v", name, polls)
		}
	}
}

// TestOthersAreNoPolls reads what is in the log beside the nodes' reads.
func TestOthersAreNoPolls(t *testing.T) {
	t.Parallel()
	log := begins("01.000", "writer", "s1") +
		line("01.100", "poller_a", "s2", `"message":"execute <unnamed>: BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"`) +
		line("01.200", "poller_a", "s2", `"message":"statement: COMMIT"`)
	if polls := parse(t, log); len(polls) != 0 {
		t.Errorf("%+v", polls)
	}
}

func TestGarbageIsNamed(t *testing.T) {
	t.Parallel()
	for _, log := range []string{"{}\n", "half a line\n" + begins("01.000", "writer", "s1")} {
		_, err := pglog.Polls(strings.NewReader(log), nil, func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("error of %q: %v", log, err)
		}
	}
}
