package app_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestFailingReadsTellNoValue has observers whose reads fail over a row by each
// means that puts its value into an error, and one that lacks a right. Only what
// that one lacks is told, and no value, wherever a failure shows.
func TestFailingReadsTellNoValue(t *testing.T) {
	t.Parallel()
	const mark = "confidential4711"
	source := pgtest.New(t)
	db := openPostgres(t, source)
	run(t, db, strings.ReplaceAll(`
		CREATE TABLE orders (id int PRIMARY KEY, v text);
		INSERT INTO orders VALUES (1, NULL), (2, '{mark}');
		CREATE TABLE hidden (id int PRIMARY KEY);
		CREATE FUNCTION leak(code text, v text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			IF v = '{mark}' THEN RAISE EXCEPTION '%', v USING ERRCODE = code, DETAIL = v, CONSTRAINT = v; END IF;
			RETURN v; END $$;
		CREATE VIEW regclass AS SELECT id, v::regclass::text AS v FROM orders;
		CREATE VIEW tsquery AS SELECT id, to_tsquery(v || ' & ')::text AS v FROM orders;
		CREATE VIEW setting AS SELECT id, current_setting(v) AS v FROM orders;
		CREATE VIEW number AS SELECT id, v::int AS v FROM orders;
		CREATE VIEW raised AS SELECT id, leak('42501', v) AS v FROM orders;
		CREATE VIEW account AS SELECT id, leak('28P01', v) AS v FROM orders;
		CREATE VIEW violated AS SELECT id, leak('23514', v) AS v FROM orders;
		CREATE TABLE common AS SELECT n AS id, '{mark}' AS v FROM generate_series(1, 9) n; ANALYZE common;
		CREATE OPERATOR === (FUNCTION = has_table_privilege, LEFTARG = text, RIGHTARG = text, RESTRICT = eqsel);
		CREATE VIEW planned AS SELECT * FROM common WHERE v === 'SELECT'`, "{mark}", mark))
	codes := map[string]string{
		"regclass": "42P01", "tsquery": "42601", "setting": "42704", "number": "22P02",
		"raised": "42501", "account": "28P01", "violated": "23514", "planned": "42P01", "hidden": "permission denied for table hidden",
	}
	folder := t.TempDir()
	text := fmt.Sprintf("database: {url: %q}\nscheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}\n"+
		"sources: {warehouse: {url: %q}}\nsinks: [{id: file, type: file, path: %q}]\nhttp: {listen: \"127.0.0.1:0\"}\nobservers:\n",
		pgtest.New(t), pgtest.NewRole(t, source, "SELECT ON orders, regclass, tsquery, setting, number, raised, account, violated, planned"),
		filepath.Join(folder, "events.jsonl"))
	for name := range codes {
		text += fmt.Sprintf("  - {id: %[1]s, type: order, source: warehouse, table: %[1]s, key: id}\n", name)
	}
	p := place{folder: folder}
	path := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
		t.Fatal(err)
	}

	log, o := new(logbook), p.options()
	o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	node, op := launch(t, o), p.operator(t)
	told := map[string]string{}
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		failed := map[string]string{}
		for _, o := range report.Observers {
			failed[o.ID] = o.LastError
		}
		for name, code := range codes {
			if !strings.Contains(failed[name], code) {
				return fmt.Errorf("%s has failed with %q, without %q", name, failed[name], code)
			}
		}
		told["status"] = encoded(t, report)
		return nil
	})
	told["validate"] = encoded(t, admin.Validate(t.Context(), admin.ValidateOptions{Config: p.config, Logger: o.Logger, Timeout: patience}))
	for _, path := range []string{"/", "/readyz", "/metrics"} {
		told[path] = pageText(t, node, path)
	}
	for name := range codes {
		_, err := op.PollOnce(t.Context(), name, admin.By{Actor: "test"})
		told["poll "+name] = fmt.Sprint(err)
	}
	told["log"] = log.String()
	for where, text := range told {
		for line := range strings.Lines(text) {
			if strings.Contains(line, mark) {
				t.Errorf("%s tells a value: %s", where, line)
			}
		}
	}
	for _, where := range []string{"status", "log", "/"} {
		if !strings.Contains(told[where], codes["hidden"]) {
			t.Errorf("%s does not tell which right is missing", where)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
