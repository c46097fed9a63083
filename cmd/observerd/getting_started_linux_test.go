package main

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// guide is a section of docs/getting-started.md as a reader meets it.
type guide struct {
	steps []step
	// here puts what this host has in the place of what the document names.
	here *strings.Replacer
	// exec sends a statement to the database that is observed.
	exec func(statement string) error
}

// step is one of three: a command with its output, a file, or SQL.
type step struct{ command, output, file, sql string }

// TestGettingStarted does what docs/getting-started.md says, in its order, in one bash for
// each section, and compares what is printed with the document, but for what varies.
// Addresses are those of the kit's servers, and polls come every 2 seconds.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]func(t *testing.T, folder string) guide{
		"SQLite on one host": func(t *testing.T, folder string) guide {
			return guide{here: strings.NewReplacer(), exec: statements(opened(t, "sqlite", "file:"+folder+"/shop.db"))}
		},
		"PostgreSQL with two nodes": func(t *testing.T, _ string) guide {
			coordination, shop := pgtest.New(t), pgtest.New(t)
			return guide{exec: statements(opened(t, "pgx", shop)), here: strings.NewReplacer(
				"postgres://observerd:secret@db.example.org/observerd", coordination, "postgres://reader:secret@db.example.org/shop", shop, "127.0.0.1:8081", "127.0.0.1:0")}
		},
		"Oracle": func(t *testing.T, _ string) guide {
			database := engine.New(engine.Options{})
			server := oratest.Start(t, oratest.Options{Users: map[string]string{"reader": "secret"}, Service: "ERP", Handler: database})
			return guide{exec: func(s string) error { return database.Exec(s) }, here: strings.NewReplacer("erp-db.example.org", server.Addr())}
		},
	}
	text, _, _ := strings.Cut(string(page), "\n## Next\n")
	sections := strings.Split(text, "\n## ")[1:]
	if len(sections) != len(open) {
		t.Fatalf("the document has %d sections, want %d", len(sections), len(open))
	}
	for _, section := range sections {
		name, text, _ := strings.Cut(section, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			g := open[name](t, folder)
			g.steps = stepsOf(t, text)
			g.follow(t, folder)
		})
	}
}

func statements(db *sql.DB) func(string) error {
	return func(statement string) error {
		_, err := db.Exec(statement)
		return err
	}
}

// block is a block of code, and the file that the text before it names in this way: `NAME`, then a colon.
var block = regexp.MustCompile("(?s)(?:`([a-z.]+)`[^`\n]*:\n\n)?```([a-z]+)\n(.*?)```\n")

func stepsOf(t *testing.T, text string) (steps []step) {
	t.Helper()
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		switch name, kind, body := m[1], m[2], m[3]; {
		case kind == "sql":
			for _, statement := range strings.Split(strings.TrimSuffix(body, ";\n"), ";\n") {
				steps = append(steps, step{sql: statement})
			}
		case kind == "yaml" && name != "":
			steps = append(steps, step{file: name, output: body})
		case kind == "console" && strings.HasPrefix(body, "$ "):
			for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
				command, output, _ := strings.Cut(part, "\n")
				steps = append(steps, step{command: command, output: strings.TrimSuffix(output, "\n")})
			}
		default:
			t.Fatalf("nobody can follow this block:\n%s", m[0])
		}
	}
	if len(steps) < 8 {
		t.Fatalf("the section has %d steps: has its form changed?", len(steps))
	}
	return steps
}

func (g *guide) follow(t *testing.T, folder string) {
	t.Helper()
	bash := startShell(t, folder)
	for _, s := range g.steps {
		switch {
		case s.sql != "":
			if err := g.exec(s.sql); err != nil {
				t.Fatalf("%s: %v", s.sql, err)
			}
		case s.file != "":
			if err := os.WriteFile(filepath.Join(folder, s.file), []byte(g.here.Replace(s.output)), 0o644); err != nil { //nolint:gosec // As a reader's editor does.
				t.Fatal(err)
			}
		default:
			g.compare(t, bash, s)
		}
	}
}

// shows are commands that change nothing: a reader repeats them until a node has done its work.
var shows = regexp.MustCompile(`^(observerd (events tail|status)|tail|wc) `)

func (g *guide) compare(t *testing.T, bash *shell, s step) {
	t.Helper()
	try := func() error {
		got := bash.run(t, g.here.Replace(s.command))
		if masked(got) != masked(g.here.Replace(s.output)) {
			return fmt.Errorf("$ %s\n%s\nThe document has:\n%s\nCompared were\n%s\nand\n%s", s.command, got, s.output, masked(got), masked(s.output))
		}
		return nil
	}
	if !shows.MatchString(s.command + " ") {
		if err := try(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := waittest.Within(t.Context(), time.Minute, try); err != nil {
		t.Fatal(err)
	}
}

// varying is what differs from one run to the next, and what is compared in its place.
var varying = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{12}  `), "HASH  "},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|µs|s|min|m|h|d)\b`), "DURATION"},
	{regexp.MustCompile(` {2,}| +$`), " "},
}

func masked(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.mask)
	}
	return strings.TrimSpace(text)
}

// shell is a bash that reads one command after another.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

// startShell starts a bash. It is killed, with all that it has started, when the test ends, or after 5 minutes.
func startShell(t *testing.T, folder string) *shell {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Stderr = folder, t.Output()
	cmd.Env = append(os.Environ(), "OBSERVERD_SCHEDULER_OBSERVER_FIXED_DELAY=2s", "OBSERVERD_HTTP_LISTEN=127.0.0.1:0", "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	timer := time.AfterFunc(5*time.Minute, end)
	t.Cleanup(func() {
		timer.Stop()
		end()
		_ = cmd.Wait() // It was killed.
	})
	return &shell{in, bufio.NewReader(out)}
}

// run returns what a command prints, and its exit code where that is not 0.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	const mark = "-- end of the command: "
	if _, err := fmt.Fprintf(s.in, "{ %s\n} 2>&1 </dev/null\nprintf '\\n%s%%d\\n' $?\n", command, mark); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v after:\n%s", command, errors.Join(err, t.Context().Err()), text.String())
		}
		if code, ended := strings.CutPrefix(line, mark); ended {
			if code != "0\n" {
				text.WriteString("exit code " + code)
			}
			return strings.Trim(text.String(), "\n")
		}
		text.WriteString(line)
	}
}
