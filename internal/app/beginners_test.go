package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// beginnersYAML is to have observers that hold the two connections of their source for as
// long as another session has an advisory lock there, and has one whose polls have five seconds.
const beginnersYAML = `
node: {name: a}
database: {url: %q}
scheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}
sources: {erp: {url: %q, pool-size: 2, query-timeout: 10m}}
http: {listen: "127.0.0.1:0"}
observers:
  - {id: last, type: last, event: Seen, source: erp, table: orders, key: id, timestamp: at, poll-timeout: 5s}
`

// held looks for that lock: one that waited for it would be told of a locked table.
const held = `
CREATE FUNCTION held() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  WHILE EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711) LOOP
    PERFORM pg_sleep(0.05);
  END LOOP;
  RETURN 1;
END $$`

// TestAPollHasItsTimeWhateverItWaitsFor lets a poll wait for others of its node for longer
// than a poll may take. It is not over before it has begun.
func TestAPollHasItsTimeWhateverItWaitsFor(t *testing.T) {
	t.Parallel()
	warehouse, coordination := pgtest.New(t), pgtest.New(t)
	owner, memory := openPostgres(t, warehouse), openPostgres(t, coordination)
	run(t, owner, `CREATE TABLE orders (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`)
	run(t, owner, `INSERT INTO orders VALUES ('one')`)
	run(t, owner, held)
	text := fmt.Sprintf(beginnersYAML, coordination, warehouse)
	for n := range 16 {
		text += fmt.Sprintf("  - {id: slow-%[1]d, type: slow%[1]d, event: Seen, source: erp, key: id, timestamp: at, overlap: 0s,"+
			" query: \"SELECT 'one' AS id, now() AS at FROM public.held()\"}\n", n)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	p := place{config: cfg}
	node, log := p.startLogged(t)
	ready(t, node)
	has := func(want int) {
		t.Helper()
		eventually(t, func() error {
			if n := count(t, memory, `SELECT count(*) FROM obs_event WHERE stream = 'last'`); n != want {
				return fmt.Errorf("%d events, want %d", n, want)
			}
			return nil
		})
	}
	has(1)
	shows := func(metric string, least float64) {
		t.Helper()
		eventually(t, func() error {
			status, page := get(t, node, "/metrics")
			for line := range strings.Lines(page) {
				if value, ok := strings.CutPrefix(line, metric+" "); ok {
					if v, _ := strconv.ParseFloat(strings.TrimSpace(value), 64); v >= least {
						return nil
					}
				}
			}
			return fmt.Errorf("%d: %s is less than %v", status, metric, least)
		})
	}

	op := p.operator(t)
	pause := func(id string) {
		t.Helper()
		if _, err := op.Pause(t.Context(), id, admin.By{Actor: "test"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	pause("last")
	// A poll that had begun before would wait for a connection, which is time of its own.
	eventually(t, func() error {
		const held = `SELECT count(*) FROM int_lock l JOIN obs_lock o ON o.term = l.client_id WHERE o.name = 'last-observer-poll'`
		if n := count(t, memory, held); n != 0 {
			return errors.New("a poll has not ended")
		}
		return nil
	})
	conn, err := owner.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	advise := func(do string) {
		t.Helper()
		if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), `SELECT pg_advisory_`+do+`(4711)`); err != nil {
			t.Fatal(err)
		}
	}
	advise("lock")
	// No observer goes on once both connections are held.
	eventually(t, func() error {
		const holding = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
		if n := count(t, owner, holding); n != 2 {
			return fmt.Errorf("%d connections are held", n)
		}
		return nil
	})
	shows(`observerd_source_polls_waiting{source="erp"}`, 1)
	run(t, owner, `INSERT INTO orders VALUES ('two')`)
	if _, err := op.Resume(t.Context(), "last", admin.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	shows(`observerd_lock_held_seconds{type="last"}`, 11) // More than the time of a poll.
	if text := log.String(); strings.Contains(text, `"level":"ERROR"`) {
		t.Error(text)
	}
	// A poll that has the source to itself is done in its five seconds sooner.
	for n := range 16 {
		pause(fmt.Sprintf("slow-%d", n))
	}
	advise("unlock")
	has(2)
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"level":"ERROR"`) && !isLatePoll(t, line) {
			t.Error(line)
		}
	}
}

// isLatePoll reports whether a line says that a poll took its five seconds and more, once it
// had begun: on a busy machine it may.
func isLatePoll(t *testing.T, line string) bool {
	t.Helper()
	var failed struct {
		Err      string
		Duration time.Duration
	}
	if err := json.Unmarshal([]byte(line), &failed); err != nil {
		t.Fatal(err)
	}
	return failed.Err == observer.ErrPollTime.Error() && failed.Duration >= 5*time.Second
}
