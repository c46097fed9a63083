package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/servertest"
)

var update = flag.Bool("update", false, "write the expected output in the scripts anew")

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "observerd" { // The processes that the tests start have flags of their own.
		servertest.SideBySide(10)
	}
	testscript.Main(redistest.Wrap(mariatest.Wrap(pgtest.Wrap(m))), map[string]func(){"observerd": main})
}

// TestScripts runs the command as a user does. Each script gets a folder with
// testdata/config.yaml in it, unless it brings its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	shared, err := os.ReadFile("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=0") // Of every process, when it ends.
			path := filepath.Join(e.WorkDir, "config.yaml")
			if _, err := os.Stat(path); err == nil {
				return nil
			}
			return os.WriteFile(path, shared, 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "sql": query, "eventually": eventually, "terminate": terminate, "hangup": hangup, "hold": hold,
			"events": eventFile, "jsonlines": jsonLines, "address": address,
			// redis starts a server, whose URL is REDIS from then on.
			"redis": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("REDIS", redistest.URL(t)) },
		},
	})
}

// exits runs a command that must end with the given exit code:
// exits 78 observerd validate.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// query runs a statement on an SQLite file and prints its rows:
// sql var/observerd.db 'SELECT …'.
func query(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_busy_timeout=5000")
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	rows, err := db.Query(args[1])
	ts.Check(err)
	defer func() { ts.Check(rows.Close()) }()
	columns, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		cells, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			targets[i] = &cells[i]
		}
		ts.Check(rows.Scan(targets...))
		for _, cell := range cells {
			fmt.Fprint(ts.Stdout(), cell.String+"|")
		}
		fmt.Fprintln(ts.Stdout())
	}
	ts.Check(rows.Err())
}

// eventually waits until a file has at least so many lines that match:
// eventually 3 'orders' var/events.jsonl.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(ts.MkAbs(args[2]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Check(err)
		}
		matches := 0
		for line := range strings.Lines(string(text)) {
			if pattern.MatchString(line) {
				matches++
			}
		}
		if matches >= want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%d lines of %s match %q, want %d", matches, args[2], args[1], want)
		}
	}
}

// hold keeps the write lock of an SQLite file until the script ends.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_busy_timeout=5000&_txlock=immediate")
	ts.Check(err)
	tx, err := db.Begin()
	ts.Check(err)
	ts.Defer(func() { ts.Check(errors.Join(tx.Rollback(), db.Close())) })
}

// terminate sends SIGTERM to the commands in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// hangup sends SIGHUP to the commands in the background.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	}
}

// eventFile checks that a file has CloudEvents alone, one a line, none twice,
// and those of each stream in order without a gap: events var/events.jsonl.
func eventFile(ts *testscript.TestScript, _ bool, args []string) {
	seen, last := make(map[string]bool), make(map[string]int64)
	for n, line := range lines(ts, args[0]) {
		e, err := events.Decode([]byte(line))
		if err != nil {
			ts.Fatalf("line %d of %s: %v", n+1, args[0], err)
		}
		if seen[e.ID.String()] {
			ts.Fatalf("line %d of %s repeats %s", n+1, args[0], e.ID)
		}
		if e.Seq != last[e.Stream]+1 {
			ts.Fatalf("line %d of %s has sequence %d of %s after %d", n+1, args[0], e.Seq, e.Stream, last[e.Stream])
		}
		seen[e.ID.String()], last[e.Stream] = true, e.Seq
	}
	if len(seen) == 0 {
		ts.Fatalf("%s has no event", args[0])
	}
}

// jsonLines checks that every line of a file is a JSON object.
func jsonLines(ts *testscript.TestScript, _ bool, args []string) {
	for n, line := range lines(ts, args[0]) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("line %d of %s: %v", n+1, args[0], err)
		}
	}
}

// address takes the address that a node listens on from its log to $ADDRESS.
func address(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(`"http":"http://([^"]+)"`).FindStringSubmatch(ts.ReadFile(args[0]))
	if found == nil {
		ts.Fatalf("%s names no address", args[0])
	}
	ts.Setenv("ADDRESS", found[1])
}

func lines(ts *testscript.TestScript, file string) []string {
	return strings.Split(strings.TrimSuffix(ts.ReadFile(file), "\n"), "\n")
}
