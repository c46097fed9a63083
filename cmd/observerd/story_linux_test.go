package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// depots is a warehouse on Oracle: keys of one and of two columns, times of changes, and
// the date of a delivery, which says nothing of when its row was written.
const depots = `
CREATE TABLE depots (depot_id NUMBER(6) PRIMARY KEY, name VARCHAR2(40) NOT NULL);
CREATE TABLE stock (depot_id NUMBER(6) NOT NULL, sku VARCHAR2(20) NOT NULL, quantity NUMBER(10,2) NOT NULL, CONSTRAINT stock_pk PRIMARY KEY (depot_id, sku));
CREATE TABLE wes_tasks (task_id NUMBER(19) PRIMARY KEY, status VARCHAR2(10) NOT NULL, updated_at TIMESTAMP(6) DEFAULT SYS_EXTRACT_UTC(SYSTIMESTAMP) NOT NULL);
CREATE INDEX wes_tasks_by_time ON wes_tasks (updated_at, task_id);
CREATE TABLE deliveries (delivery_id NUMBER(19) PRIMARY KEY, delivered_on DATE NOT NULL, weight NUMBER(12,3));
INSERT INTO depots VALUES (1, 'Ulm');
INSERT INTO depots VALUES (2, 'Kiel');
INSERT INTO stock VALUES (1, 'W/1', 39.50);
INSERT INTO stock VALUES (2, 'N-7', 17);
INSERT INTO wes_tasks (task_id, status, updated_at) VALUES (9007199254740993, 'new', TIMESTAMP '2019-05-01 10:00:00');
INSERT INTO deliveries VALUES (1, DATE '1998-02-03', 12.5)`

// told is what a consumer may rely on in an event.
type told struct {
	Source, Type, Subject, Change string
	Snapshot                      bool
	ObservedTime                  time.Time
	Data                          map[string]json.RawMessage
}

// TestStories goes from the URL of a database to a node that runs, and on to rows that
// change and go.
func TestStories(t *testing.T) {
	t.Parallel()
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		address := mariatest.New(t)
		db := opened(t, "mysql", dsnOf(t, address))
		exec := func(statement string) { t.Helper(); inDatabase(t, db, statement) }
		for statement := range strings.SplitSeq(strings.NewReplacer("{time}", "DATETIME", "{kept}", "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP").Replace(company), ";\n") {
			exec(statement)
		}
		// Some hundred rows of years ago.
		exec("INSERT INTO orders SELECT 10250 + seq, 'BERGS', DATE_ADD('1996-07-06', INTERVAL seq DAY), NULL, NULL FROM seq_1_to_300")
		s := newStory(t, address, 13)
		s.expect("order-details", "10248/12", "new true", `"order_id":10248`, `"product_id":12`)
		s.expect("customers", "ALFKI", "new true", `"customer_id":"ALFKI"`)
		s.expect("orders", "10550", "new true", `"order_id":10550`, `"order_date":"1997-05-02"`)
		exec("UPDATE order_details SET quantity = 11 WHERE order_id = 10248 AND product_id = 12")
		s.expect("order-details", "10248/12", "changed false", `"order_id":10248`, `"quantity":11`)
		exec("DELETE FROM order_details WHERE order_id = 10248 AND product_id = 12")
		s.expect("order-details", "10248/12", "gone false", `"order_id":10248`, `"product_id":12`)
	})
	t.Run("oracle", func(t *testing.T) {
		t.Parallel()
		e := engine.New(engine.Options{})
		exec := func(statement string) {
			t.Helper()
			if err := e.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(depots), ";\n") {
			exec(statement)
		}
		server := oratest.Start(t, oratest.Options{Users: map[string]string{"app": "tiger"}, Handler: e})
		s := newStory(t, server.URL("app", "tiger"), 4)
		s.expect("deliveries", "1", "new true", `"DELIVERED_ON":"1998-02-03T00:00:00"`, `"WEIGHT":12.5`)
		s.expect("stock", "1/W%2F1", "new true", `"DEPOT_ID":1`, `"SKU":"W/1"`, `"QUANTITY":39.5`)
		s.expect("wes-tasks", "9007199254740993", "new true", `"TASK_ID":9007199254740993`, `"UPDATED_AT":"2019-05-01T10:00:00"`)
		exec("UPDATE wes_tasks SET status = 'done', updated_at = SYS_EXTRACT_UTC(SYSTIMESTAMP)")
		s.expect("wes-tasks", "9007199254740993", "changed false", `"TASK_ID":9007199254740993`, `"STATUS":"done"`)
		exec("DELETE FROM stock WHERE sku = 'W/1'")
		s.expect("stock", "1/W%2F1", "gone false", `"DEPOT_ID":1`, `"SKU":"W/1"`)
	})
}

func inDatabase(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// story is a node of a configuration that init made.
type story struct {
	t       *testing.T
	file    string
	environ []string
}

// newStory makes a configuration of a database, of which so many observers are switched
// on, holds validate to it, and runs a node until the test ends. The others are commented
// out for the reasons that are given, and switched on after that.
func newStory(t *testing.T, address string, observers int, decisions ...string) *story {
	t.Helper()
	s := &story{t: t, file: filepath.Join(t.TempDir(), "config.yaml")}
	s.call("init", address, "--out", s.file)
	text, err := os.ReadFile(s.file)
	must(t, err)
	if found := len(switchedOn.FindAllString(string(text), -1)); found != observers {
		t.Errorf("%d observers are switched on:\n%s", found, text)
	}
	for _, decision := range decisions {
		if !strings.Contains(strings.ReplaceAll(strings.Join(strings.Fields(string(text)), " "), "# ", ""), decision) {
			t.Errorf("the configuration does not say %q:\n%s", decision, text)
		}
	}
	if len(decisions) > 0 { // The user decides to read all rows.
		text = regexp.MustCompile(`(?m)^  # (- |  [a-z-]+: )`).ReplaceAll(text, []byte("  $1"))
		must(t, os.WriteFile(s.file, text, 0o600))
	}
	s.environ = passwordOf(t, address, string(text))
	if out := s.call("validate", "--config", s.file, "--sql=false"); !strings.Contains(out, " are ready") {
		t.Errorf("validate says\n%s", out)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		code := run(ctx, []string{"run", "--config", s.file, "--set", "http.listen=", "--set", "scheduler.observer.fixed-delay=1s"}, s.environ, nil, &stdout, &stderr)
		ended <- fmt.Sprintf("exit code %d\n%s", code, stderr.String())
	}()
	t.Cleanup(func() {
		stop()
		if said := <-ended; t.Failed() {
			t.Logf("the node ended with %.4000s", said)
		}
	})
	return s
}

func (s *story) call(args ...string) string {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(s.t.Context(), args, s.environ, nil, &stdout, &stderr); code != exitOK {
		s.t.Fatalf("%v: exit code %d:\n%s%s", args, code, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// expect waits for an event of a table with a subject, what happened and whether it is
// history, and with these members.
func (s *story) expect(table, subject, happened string, members ...string) {
	s.t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	for {
		var stdout, stderr bytes.Buffer
		_ = run(s.t.Context(), []string{"events", "tail", "-n", "1000", "-o", "json", "--config", s.file}, s.environ, nil, &stdout, &stderr)
		for line := range strings.Lines(stdout.String()) {
			var e told
			must(s.t, json.Unmarshal([]byte(line), &e))
			if !strings.HasSuffix(e.Source, "-"+table) || e.Subject != subject || fmt.Sprint(e.Change, " ", e.Snapshot) != happened {
				continue
			}
			for _, member := range members {
				if !strings.Contains(line, member) {
					s.t.Errorf("%s %s lacks %s: %s", table, happened, member, line)
				}
			}
			if e.ObservedTime.IsZero() || strings.HasPrefix(happened, "gone") && len(e.Data) != strings.Count(subject, "/")+1 {
				s.t.Errorf("%s %s is %s", table, happened, line)
			}
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("no event of %s %s is %s:\n%s%s", table, subject, happened, stdout.String(), stderr.String())
		}
	}
}
