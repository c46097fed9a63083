package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lmittmann/tint"
)

// obeyedIn reports whether a terminal would do something at the text, by a rule of its
// own.
func obeyedIn(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}

// hostile is what others may write wherever they may write something.
const hostile = "\x1b[31m\a\u009b1m\u202e"

// hostilePlace is a folder with a configuration whose databases and names are full
// of what a terminal would obey.
func hostilePlace(t *testing.T) (config string) {
	t.Helper()
	folder := t.TempDir()
	execSQL(t, filepath.Join(folder, "w.db"),
		"CREATE TABLE good (id TEXT PRIMARY KEY, at TEXT, v TEXT)",
		"INSERT INTO good VALUES ('a', '2026-01-01 "+hostile+"', 'x'), ('"+hostile+"', '2026-01-01T00:00:01Z', 'v"+hostile+"')",
		"CREATE VIEW broken AS SELECT id, at, v FROM \"no"+hostile+"such\"",
	)
	text := fmt.Sprintf(`
node: {name: n}
database: {url: "sqlite:%[1]s/o.db"}
scheduler: {observer: {fixed-delay: 1s, lock: {ttl: 15s}}}
sources: {w: {url: "sqlite:%[1]s/w.db"}}
observers:
  - {id: good, type: order, source: w, table: good, key: id, timestamp: at}
  - {id: asked, type: order, source: w, query: %[2]s, key: id, timestamp: at}
  - {id: broken, type: wes, source: w, table: broken, key: id, timestamp: at}
sinks: [{id: s, type: file, path: %[1]s/events.jsonl}]
http: {listen: ""}
log: {level: error, format: json}
`, folder, strconv.QuoteToASCII("SELECT id, at, v, '"+hostile+"' AS more FROM good")) // Which YAML reads.
	config = filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr := printed(t, "migrate", "up", "--config", config); stderr != "" {
		t.Fatal(stdout, stderr)
	}
	execSQL(t, filepath.Join(folder, "o.db"), "INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('"+
		hostile+"', 'R"+hostile+"', 'client"+hostile+"', '2020-01-01 00:00:00.000')")
	return config
}

func execSQL(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%q: %v", statement, err)
		}
	}
}

// printed is what a command prints.
func printed(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	run(t.Context(), args, nil, strings.NewReader(""), &out, &complaint)
	return out.String(), complaint.String()
}

// TestNoCommandLetsATerminalObey runs the commands where names, keys, rows and
// messages would have a terminal do something. Each shows what there was.
func TestNoCommandLetsATerminalObey(t *testing.T) {
	t.Parallel()
	config := hostilePlace(t)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no"+hostile, http.StatusServiceUnavailable)
	}))
	t.Cleanup(stranger.Close)
	elsewhere := filepath.Join(t.TempDir(), "none"+hostile)
	for _, args := range [][]string{
		{"validate"},
		{"poll", "good", "--dry-run"},
		{"poll", "asked", "--dry-run"},
		{"poll", "broken", "--dry-run"},
		{"poll", "broken", "--once"},
		{"poll", "nobody" + hostile, "--once"},
		{"status"},
		{"doctor", "--watch", "0"},
		{"events", "tail", "good", "-o", "text"},
		{"events", "tail", "nobody" + hostile, "-o", "text"},
		{"observers", "list"},
		{"observers", "pause", "nobody" + hostile},
		{"observers", "backfill", "nobody" + hostile},
		{"observers", "nothing" + hostile},
		{"healthcheck", "--set", "http.listen=" + stranger.Listener.Addr().String()},
		{"validate", "--config", elsewhere},
		{"sample", "--steps", "1", "--path", elsewhere},
		{"migrate", "status", "--set", "database.url=sqlite:" + elsewhere + "/o.db"},
		{"version", "--set" + hostile},
		{"nothing" + hostile},
	} {
		if args[0] == "events" && args[2] == "good" {
			printed(t, "poll", "good", "--once", "--config", config)
		}
		stdout, stderr := printed(t, append([]string{"--config", config}, args...)...)
		if obeyedIn(stdout + stderr) {
			t.Errorf("%q: a terminal obeys\n%q\n%q", args, stdout, stderr)
		}
		if !strings.Contains(stdout+stderr, `\u001b`) && !strings.Contains(stdout+stderr, `\x1b`) {
			t.Errorf("%q: nothing of it is shown, so nothing is proved:\n%s%s", args, stdout, stderr)
		}
	}
}

// TestJSONKeepsTheBytes has the outputs that programs read.
func TestJSONKeepsTheBytes(t *testing.T) {
	t.Parallel()
	config := hostilePlace(t)
	printed(t, "poll", "good", "--once", "--config", config)
	for _, args := range [][]string{
		{"events", "tail", "good"},
		{"poll", "good", "--dry-run", "-o", "json"},
		{"status", "-o", "json"},
		{"doctor", "--watch", "0", "-o", "json"},
	} {
		stdout, _ := printed(t, append(args, "--config", config)...)
		if !json.Valid([]byte(stdout)) || !strings.Contains(stdout, "\u009b1m\u202e") || strings.Contains(stdout, "\x1b") {
			t.Errorf("%q: %q", args, stdout)
		}
	}
}

// TestTheLogOfATerminal has values that tint, with colours, would make escape
// characters of.
func TestTheLogOfATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(tint.NewTextHandler(&out, &tint.Options{ReplaceAttr: harmless, TimeFormat: time.TimeOnly}))
	log.With("with", hostile).Error("Error", "text", hostile, "written", `\x1b[31m`, "err", errors.New("a b"+hostile), "list", []string{hostile, `\x1b[1m x`}, "plain", "a b")
	rest := out.String()
	for _, colour := range []string{"\x1b[0m", "\x1b[2m", "\x1b[91m", "\x1b[91;2m", "\x1b[2;91m"} {
		rest = strings.ReplaceAll(rest, colour, "")
	}
	if obeyedIn(rest) || strings.Count(rest, "u001b") != 4 || !strings.Contains(rest, `"a b"`) {
		t.Errorf("the log is %q", out.String())
	}
}
