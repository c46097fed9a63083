package app_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestManyTypesAtOneTick has more types due at once than the database can
// serve in the time of one call: a lock takes 100 ms to acquire, as on a server
// whose disk or standby is slow, and 20 ms on SQLite. They wait for each other on the node. None of
// them fails for that, tries its lock twice, or calls the database away.
func TestManyTypesAtOneTick(t *testing.T) {
	t.Parallel()
	onBoth(t, manyTypesAtOneTick)
}

func manyTypesAtOneTick(t *testing.T, p place) {
	// More than the one connection of SQLite, or two of PostgreSQL, acquire in 5 s,
	// which is what one call may take.
	types := 260
	if strings.HasPrefix(p.config.Database.URL.Reveal(), "postgres") {
		types = 130
	}
	crowd(t, p, types)
	node, log := p.startLogged(t)
	eventually(t, func() error {
		status, page := get(t, node, "/metrics")
		if polls := sumOf(page, "scheduler_observer_polls_total"); status != http.StatusOK || polls < float64(types) {
			return fmt.Errorf("%d: %v polls of %d", status, polls, types)
		}
		if held := sumOf(page, "observerd_leases_held"); held > 0 {
			return fmt.Errorf("%v leases are held", held)
		}
		return nil
	})
	_, page := get(t, node, "/metrics")
	polls := sumOf(page, "scheduler_observer_polls_total")
	for metric, want := range map[string]float64{
		"observerd_lock_attempts_total":          polls,
		"scheduler_observer_lock_acquired_total": polls,
		"observerd_lock_errors_total":            0,
		"observerd_leases_lost_total":            0,
	} {
		if got := sumOf(page, metric); got != want {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "does not answer") || strings.Contains(line, `"level":"ERROR"`) {
			t.Error(line)
		}
	}
}

// sumOf adds up the values of a metric, whatever its labels.
func sumOf(page, metric string) (sum float64) {
	for line := range strings.Lines(page) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ = strings.Cut(name, "{"); name == metric {
			v, _ := strconv.ParseFloat(value, 64)
			sum += v
		}
	}
	return sum
}

// teachToSleep gives SQLite a function that waits, before anything connects. It is
// short, because each call that waits for the connection is drawn at random: were
// few drawn in 5 s, one that nothing is wrong with would run out of its time.
func teachToSleep() {
	sqlite.MustRegisterScalarFunction("sleep_20_ms", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		time.Sleep(20 * time.Millisecond)
		return nil, nil
	})
}

// crowd gives the place so many types, each with an observer of one empty table,
// and a database that takes its time over locks.
func crowd(t *testing.T, p place, types int) {
	t.Helper()
	migrated, err := admin.NewOperator(admin.OperatorOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = migrated.Migrate(t.Context(), admin.By{})
	if err := errors.Join(err, migrated.Close()); err != nil {
		t.Fatal(err)
	}
	db := p.beside(t)
	slow := []string{`CREATE TRIGGER slow BEFORE INSERT ON int_lock BEGIN SELECT sleep_20_ms(); END`}
	if isPostgres(t, db) {
		slow = []string{
			`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END'`,
			`CREATE TRIGGER slow BEFORE INSERT ON int_lock FOR EACH ROW EXECUTE FUNCTION slow()`,
		}
	}
	for _, text := range slow {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "node: {name: test-node}\ndatabase: {url: %q, pool-size: 2}\n", p.config.Database.URL.Reveal())
	text.WriteString("scheduler: {observer: {fixed-delay: 24h}}\nhttp: {listen: \"127.0.0.1:0\"}\n")
	fmt.Fprintf(&text, "sources: {warehouse: {url: \"sqlite:%s/warehouse.db\"}}\nobservers:\n", p.folder)
	for i := range types {
		fmt.Fprintf(&text, "  - {id: orders-%[1]d, type: t%[1]d, event: OrderSeen, source: warehouse, table: orders, key: order_id, timestamp: updated_at}\n", i)
	}
	path := filepath.Join(p.folder, "crowd.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	made, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	*p.config = *made
}
