package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
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
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}, Environ: []string{"DATABASE_PASSWORD=a", "ERP_PASSWORD=b"}})
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

// TestMigrationGuideAsksForNoUpgradeThatCannotBeHad: of Spring Integration 6
// nothing is newer, for the public, than what the interop tests run.
func TestMigrationGuideAsksForNoUpgradeThatCannotBeHad(t *testing.T) {
	t.Parallel()
	pom, err := os.ReadFile(filepath.Join("..", "..", "interop", "spring", "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`<spring\.integration>(6\.[0-9.]+)<`).FindSubmatch(pom)
	// The versions, what they write, and what to do about it.
	rows := regexp.MustCompile(`(?m)^ *\| ([^|]*[0-9]\.[0-9][^|]*) \| ([^|]*UTC[^|]*|[^|]*local[^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(guide(t), -1)
	if newest == nil || len(rows) != 4 {
		t.Fatalf("newest %q, %d rows of versions", newest, len(rows))
	}
	for _, row := range rows {
		for _, version := range regexp.MustCompile(`\b6\.[0-9]+(\.[0-9]+)?`).FindAllString(row[3], -1) {
			if slices.Compare(parts(t, version), parts(t, string(newest[1]))) > 0 {
				t.Errorf("users of %s are to upgrade to %s, the newest is %s", row[1], version, newest[1])
			}
		}
	}
}

// parts are the numbers of a version.
func parts(t *testing.T, version string) (numbers []int) {
	t.Helper()
	for _, text := range strings.Split(version, ".") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// TestMigrationGuideKnowsItsTests keeps the names of tests in it true.
func TestMigrationGuideKnowsItsTests(t *testing.T) {
	t.Parallel()
	exist := allTests(t)
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(guide(t), -1) {
		if !exist[m[1]] {
			t.Errorf("the guide names %s, which does not exist", m[1])
		}
	}
}

// block is a fenced block of a guide.
type block struct{ language, text string }

// blocks are those of the guide between two of its headings, in order.
func blocks(t *testing.T, from, to string) (all []block) {
	t.Helper()
	_, rest, begins := strings.Cut(guide(t), "\n"+from+"\n")
	rest, _, ends := strings.Cut(rest, "\n"+to+"\n")
	if !begins || !ends {
		t.Fatalf("the guide has no %q before a %q", from, to)
	}
	for _, m := range regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$").FindAllStringSubmatch(rest, -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// TestMigrationGuideInItsOrder follows the guide from its preparations to the
// nodes that are deployed, switched off: each statement when and by whom the guide
// says, each look of the doctor with the rights that the nodes have by then. A Java
// node holds a lock meanwhile.
func TestMigrationGuideInItsOrder(t *testing.T) {
	t.Parallel()
	for _, g := range []springtest.Generation{springtest.Spring6, springtest.Spring7} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			followGuide(t, g)
		})
	}
}

func followGuide(t *testing.T, g springtest.Generation) {
	t.Helper()
	owner := pgtest.New(t)
	migrator, role := pgtest.NewRole(t, owner, "CREATE ON SCHEMA public"), pgtest.NewRole(t, owner)
	statements(t, owner, g.Table())
	node := setup(t, owner).as(t, role, map[string]any{
		"database.auto-migrate": "false", "scheduler.observer.enabled": "false", "scheduler.observer.lock.key-format": "spring",
	})
	steps := append(blocks(t, "## Before you begin", "## Configuration"), blocks(t, "### 2. Deploy, switched off", "### 3. The canary: one node, 24 hours")...)
	granter, looks := owner, 0
	for _, b := range steps {
		if b.language == "sql" {
			statements(t, granter, strings.ReplaceAll(b.text, "TO observerd;", "TO "+user(t, role)+";"))
			continue
		}
		for line := range strings.Lines(b.text) {
			switch {
			case strings.HasSuffix(line, " observerd migrate up\n"):
				migrate(t, setup(t, migrator))
				granter = migrator // Whom the new tables belong to.
			case strings.Contains(line, "$ observerd doctor"):
				java(t, owner, g)
				healthy(t, node)
				looks++
			case !strings.Contains(line, "$ curl"):
				t.Errorf("the test does not know how to follow %q", line)
			}
		}
	}
	if granter != migrator || looks != 2 {
		t.Errorf("migrated: %v; the doctor was asked %d times, want before and after", granter == migrator, looks)
	}
	ready(t, node.start(t))
}

// statements runs a script as the role of that URL.
func statements(t *testing.T, url, script string) {
	t.Helper()
	db := setup(t, url).beside(t)
	for _, text := range strings.Split(script, ";") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// user is the role of a URL.
func user(t *testing.T, role string) string {
	t.Helper()
	parsed, err := url.Parse(role)
	if err != nil {
		t.Fatal(err)
	}
	return `"` + parsed.User.Username() + `"`
}

// migrate does what 'observerd migrate up' does.
func migrate(t *testing.T, p place) {
	t.Helper()
	op, err := admin.NewOperator(admin.OperatorOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = op.Migrate(t.Context(), admin.By{})
	if err := errors.Join(err, op.Close()); err != nil {
		t.Fatal(err)
	}
}

// java has a Java node take the lock of the orders, anew.
func java(t *testing.T, url string, g springtest.Generation) {
	t.Helper()
	node, err := springtest.NewRepository(springtest.Options{URL: url, Generation: g, TTL: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	statements(t, url, `DELETE FROM INT_LOCK`)
	ok, err := node.Acquire(t.Context(), g.Key("order-observer-poll"))
	if err := errors.Join(err, node.Disconnect()); err != nil || !ok {
		t.Fatalf("a Java node has not got its lock: %v, %v", ok, err)
	}
}

// healthy wants a doctor without problems, and without warnings except that no node
// runs.
func healthy(t *testing.T, p place) {
	t.Helper()
	diagnosis, err := admin.Doctor(t.Context(), p.config, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range diagnosis.Findings {
		if f.Severity == doctor.Problem || f.Severity == doctor.Warning && f.Check != "nodes" {
			t.Errorf("the doctor says: %+v", f)
		}
	}
}

// TestNodeWithTheRightsOfTheGuide works with a role that has the rights which
// the guide grants, and no others.
func TestNodeWithTheRightsOfTheGuide(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	p := setup(t, url)
	migrate(t, p)
	// An unused one, so that the janitor removes it.
	if _, err := p.beside(t).ExecContext(t.Context(), `INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at) VALUES ('old', '', 0, 1, '2020-01-01')`); err != nil {
		t.Fatal(err)
	}
	p = p.as(t, pgtest.NewRole(t, url, grants(t)...), map[string]any{"database.auto-migrate": "false"})

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
	diagnosis, err := admin.Doctor(t.Context(), p.config, 0)
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
func acts(t *testing.T, op *admin.Operator) {
	t.Helper()
	for _, act := range []func() (bool, error){
		func() (bool, error) { return op.Pause(t.Context(), "tasks", admin.By{Actor: "test"}, 0) },
		func() (bool, error) { return op.Resume(t.Context(), "tasks", admin.By{Actor: "test"}) },
		func() (bool, error) {
			return op.Reset(t.Context(), "tasks", admin.By{Actor: "test"}, admin.ResetOptions{Forget: true})
		},
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

// as is the same place with the coordination database at another URL, and other
// keys too.
func (p place) as(t *testing.T, url string, keys map[string]any) place {
	t.Helper()
	path := filepath.Join(p.folder, "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, yaml, url, p.folder), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}, Overrides: keys})
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
