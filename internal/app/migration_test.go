package app_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/pgtest"
)

// guide reads docs/migration-from-spring.md.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration-from-spring.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMigrationGuideLoads keeps the configuration of the guide one that loads.
func TestMigrationGuideLoads(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(guide(t))
	if block == nil {
		t.Fatal("the guide has no configuration")
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(block[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, warnings, err := config.Load(config.Options{Path: path, Environ: []string{"DATABASE_PASSWORD=a", "ERP_PASSWORD=b"}})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if cfg.Scheduler.Enabled || cfg.Scheduler.Lock.KeyFormat != "spring" {
		t.Error("the guide begins with a node that is switched off and shares its locks")
	}
}

// TestMigrationGuideKnowsItsMetrics compares it with the page of all metrics.
func TestMigrationGuideKnowsItsMetrics(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(?:observerd|scheduler_observer)_[a-z_]+`).FindAllString(guide(t), -1)
	if len(named) < 10 {
		t.Errorf("the guide names %d metrics", len(named))
	}
	for _, name := range named {
		if !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("the guide names %s, docs/metrics.md does not", name)
		}
	}
}

// TestMigrationGuideKnowsItsTests keeps the names of tests in it true.
func TestMigrationGuideKnowsItsTests(t *testing.T) {
	t.Parallel()
	exist := testsBelow(t, "..")
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(guide(t), -1) {
		if !exist[m[1]] {
			t.Errorf("the guide names %s, which does not exist", m[1])
		}
	}
}

// TestNodeWithTheRightsOfTheGuide works with a role that has the rights which
// the guide grants, and no others.
func TestNodeWithTheRightsOfTheGuide(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	p := setup(t, url)
	migrated, err := app.NewOperator(app.OperatorOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := migrated.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = migrated.Close()
	// One that nobody uses, so that the janitor removes it.
	if _, err := p.beside(t).ExecContext(t.Context(), `INSERT INTO obs_sink_offset VALUES ('old', '', 0, 1, '2020-01-01')`); err != nil {
		t.Fatal(err)
	}
	p = p.as(t, pgtest.NewRole(t, url, grants(t)...))

	p.config.Database.JanitorInterval = 50 * time.Millisecond
	// Polls are kept for some turns, so that several can be seen at a time.
	p.config.Database.Retention = config.Retention{
		Events: time.Second, Polls: 10 * time.Second, Audit: time.Second, Dead: time.Second, Nodes: time.Minute, StaleLocks: time.Minute,
	}
	var log logbook
	options := p.options()
	options.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	node, err := app.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	node.Start()
	t.Cleanup(func() { stop(t, node) })
	ready(t, node)
	op := p.operator(t)
	eventually(t, p.delivered(t, op, "orders", 1))
	acts(t, op)
	eventually(t, func() error {
		return page(t, node, "/metrics", `observerd_janitor_deleted_rows_total{table="obs_sink_offset"} 1`, `observerd_janitor_deleted_rows_total{table="obs_poll"}`)
	})
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err == nil && len(report.Polls) < 6 {
			err = fmt.Errorf("%d polls", len(report.Polls))
		}
		return err
	})
	if text := log.String(); strings.Contains(text, "permission denied") {
		t.Errorf("a right is missing:\n%s", text)
	}
	diagnosis, err := app.Doctor(t.Context(), p.config, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range diagnosis.Findings {
		if (f.Check == "rights" || f.Check == "look") && f.Severity != doctor.OK {
			t.Errorf("the doctor says of a role with all rights: %+v", f)
		}
	}
}

// acts does everything that an operator can do.
func acts(t *testing.T, op *app.Operator) {
	t.Helper()
	for _, act := range []func() (bool, error){
		func() (bool, error) { return op.Pause(t.Context(), "tasks", "test") },
		func() (bool, error) { return op.Resume(t.Context(), "tasks", "test") },
		func() (bool, error) { return op.Reset(t.Context(), "tasks", "test", app.ResetOptions{Forget: true}) },
	} {
		if _, err := act(); err != nil {
			t.Error(err)
		}
	}
}

// grants are the statements of the guide, as pgtest wants them: what follows
// GRANT and precedes TO.
func grants(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`GRANT (.*) TO observerd;`).FindAllStringSubmatch(guide(t), -1) {
		all = append(all, m[1])
	}
	if len(all) < 3 {
		t.Fatalf("the guide has %d grants", len(all))
	}
	return all
}

// as is the same place with the coordination database at another URL, which
// the node does not migrate.
func (p place) as(t *testing.T, url string) place {
	t.Helper()
	path := filepath.Join(p.folder, "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, yaml, url, p.folder), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	p.config, _, err = config.Load(config.Options{Path: path, Overrides: map[string]any{"database.auto-migrate": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// logbook keeps a log that is written by many.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
