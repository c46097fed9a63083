package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestSmallestConfiguration goes from the configuration in the manual to events.
func TestSmallestConfiguration(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(manual), "\n## The smallest configuration\n")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```\n")
	if n := strings.Count(text, "\n"); n != 7 {
		t.Fatalf("it has %d lines, want 7:\n%s", n, text)
	}
	for name, open := range map[string]func(t *testing.T, folder string) (*sql.DB, string){
		"sqlite": func(t *testing.T, folder string) (*sql.DB, string) {
			return opened(t, "sqlite", "file:"+folder+"/shop.db"), "sqlite:" + folder + "/shop.db"
		},
		"postgres": func(t *testing.T, _ string) (*sql.DB, string) {
			address := pgtest.New(t)
			return opened(t, "pgx", address), address
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			db, address := open(t, folder)
			file := filepath.Join(folder, "config.yaml")
			here := strings.NewReplacer("postgres://observerd@db.example.org/shop", address, "sqlite:var/", "sqlite:"+folder+"/").Replace(text)
			if err := os.WriteFile(file, []byte(here), 0o600); err != nil {
				t.Fatal(err)
			}
			smallestToEvents(t, db, file)
		})
	}
}

func smallestToEvents(t *testing.T, db *sql.DB, file string) {
	t.Helper()
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	call := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append(args, "--config", file), nil, nil, &stdout, &stderr); code != want {
			t.Fatalf("%v: exit code %d:\n%s%s", args, code, stdout.String(), stderr.String())
		}
		return stdout.String() + stderr.String()
	}
	story := func() (events []string) {
		for line := range strings.Lines(call(exitOK, "events", "tail", "-n", "100", "-o", "json")) {
			var e struct {
				Type, Subject, Change string
				Data                  struct{ SKU, Quantity int }
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			events = append(events, fmt.Sprint(e.Type, " ", e.Subject, " ", e.Change, " ", e.Data.SKU, " ", e.Data.Quantity))
		}
		return events
	}
	exec("CREATE TABLE stock (sku INT NOT NULL, depot VARCHAR(10) NOT NULL, quantity INT NOT NULL, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (depot, sku))")
	exec("CREATE INDEX stock_by_time ON stock (updated_at, depot, sku)")
	exec("INSERT INTO stock (sku, depot, quantity) VALUES (11, 'A', 39)")
	call(exitOK, "validate")
	if schema := call(exitOK, "schema", "shop-stock"); !strings.Contains(schema, "StockObservedEvent") {
		t.Errorf("the schema is %s", schema)
	}
	call(exitOK, "migrate", "up")
	if out := call(exitOK, "poll", "shop-stock", "--dry-run"); !strings.Contains(out, "A/11") || !strings.Contains(out, "SELECT") {
		t.Errorf("a dry run says %s", out)
	}
	call(exitOK, "poll", "shop-stock", "--once")
	exec("UPDATE stock SET quantity = 38")
	exec("INSERT INTO stock (sku, depot, quantity) VALUES (11, 'B', 17)")
	call(exitOK, "poll", "shop-stock", "--once")
	want := "[StockObservedEvent A/11 new 11 39 StockObservedEvent A/11 changed 11 38 StockObservedEvent B/11 new 11 17]"
	if got := fmt.Sprint(story()); got != want {
		t.Errorf("events are %s, want %s", got, want)
	}

	// The same key written out makes no event, and no other definition.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	coordination := opened(t, "sqlite", "file:"+filepath.Dir(file)+"/observerd.db")
	definition := func() (hash string) {
		t.Helper()
		if err := coordination.QueryRow("SELECT definition FROM obs_cursor").Scan(&hash); err != nil || hash == "" {
			t.Fatalf("the definition is %q, %v", hash, err)
		}
		return hash
	}
	before := definition()
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Replace(text, []byte("table: stock,"), []byte("table: stock,"+key), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(" key: [depot, sku], event: StockObservedEvent, detect: change,")
	call(exitOK, "poll", "shop-stock", "--once")
	if after := definition(); after != before {
		t.Errorf("the definition was %s and is %s", before, after)
	}
	write("")
	call(exitOK, "poll", "shop-stock", "--once")
	if got := fmt.Sprint(story()); got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
}
