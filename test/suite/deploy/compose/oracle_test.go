package compose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// oracle is the database of docker-compose.yml, on the emulator: setup.sh has
// been followed step by step.
type oracle struct {
	project *types.Project
	engine  *engine.Engine
	server  *oratest.Server
}

// The schema and the service are those that the image makes.
const (
	oracleSchema  = "SHOP"
	oracleService = "FREEPDB1"
)

func openOracle(t *testing.T) oracle {
	t.Helper()
	o := oracle{project: load(t, []string{"oracle"}), engine: engine.New(engine.Options{Version: 23, Owner: oracleSchema})}
	service := o.project.Services["oracle"]
	password := *service.Environment["WAREHOUSE_PASSWORD"]
	for _, line := range hereDocument(t, mounted(t, service, "/container-entrypoint-initdb.d/setup.sh")) {
		o.follow(t, service, strings.ReplaceAll(line, "${WAREHOUSE_PASSWORD}", password))
	}
	server, err := oratest.Open(oratest.Options{
		Users: map[string]string{"READER": password}, Service: oracleService, Version: 23, Handler: o.engine,
	})
	must(t, err)
	t.Cleanup(func() { server.Close() })
	o.server = server
	return o
}

// hereDocument returns the lines that a script hands to sqlplus.
func hereDocument(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	must(t, err)
	_, text, begins := bytes.Cut(text, []byte("<<SQL\n"))
	text, _, ends := bytes.Cut(text, []byte("\nSQL\n"))
	if !begins || !ends {
		t.Fatalf("%s hands nothing to sqlplus", path)
	}
	return strings.Split(string(text), "\n")
}

// own are lines for SQL*Plus itself, and two that put a session into the database
// and the schema where a session of the emulator is anyway.
var own = regexp.MustCompile(`^(WHENEVER|SET|EXIT$|ALTER SESSION SET CONTAINER = ` + oracleService + `;|ALTER SESSION SET CURRENT_SCHEMA = ` + oracleSchema + `;)`)

// follow does what SQL*Plus does with a line.
func (o oracle) follow(t *testing.T, service types.ServiceConfig, line string) {
	t.Helper()
	script, calls := strings.CutPrefix(line, "@")
	switch {
	case own.MatchString(line):
	case calls:
		words := strings.Fields(script)
		o.run(t, mounted(t, service, words[0]), words[1:]...)
	default:
		o.exec(t, strings.TrimSuffix(line, ";"))
	}
}

func (o oracle) exec(t *testing.T, statement string) {
	t.Helper()
	if err := o.engine.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// define is a line that names an argument.
var define = regexp.MustCompile(`^DEFINE (\w+) = &(\d)$`)

// run runs a script with arguments. COMMIT is left out: the emulator's owner
// commits each statement.
func (o oracle) run(t *testing.T, path string, args ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	must(t, err)
	var lines, names []string
	for line := range strings.Lines(string(text)) {
		if found := define.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			value := strings.Trim(args[found[2][0]-'1'], `"`)
			names = append(names, "&"+found[1]+".", value, "&"+found[1], value)
		} else if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	all := strings.NewReplacer(names...).Replace(strings.Join(lines, ""))
	for statement := range strings.SplitSeq(all, ";") {
		if statement = strings.TrimSpace(statement); statement != "" && statement != "COMMIT" {
			o.exec(t, statement)
		}
	}
}

// environ is that of the node, with the address of the emulator in the URL.
func (o oracle) environ(t *testing.T) (environ []string, config string) {
	t.Helper()
	node := o.project.Services["node-oracle"]
	config = mounted(t, node, configPath)
	environ = environment(t, node)
	text := strings.ReplaceAll(parsed(t, config).Sources["warehouse"].URL, "${WAREHOUSE_PASSWORD}", *node.Environment["WAREHOUSE_PASSWORD"])
	u, err := url.Parse(text)
	must(t, err)
	if u.Host != "oracle:1521" || u.Path != "/"+oracleService {
		t.Fatalf("the configuration asks %s for %s", u.Host, u.Path)
	}
	u.Host = o.server.Addr()
	return append(environ, "OBSERVERD_SOURCES_WAREHOUSE_URL="+u.String()), config
}

// TestOracleValidates asks the daemon what it thinks of the configuration: no
// error, and no right that is missing or too much.
func TestOracleValidates(t *testing.T) {
	t.Parallel()
	o := openOracle(t)
	environ, config := o.environ(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	validate := exec.CommandContext(ctx, binary(t), "--config", absolute(t, config), "validate", "-o", "json")
	validate.Dir, validate.Env = t.TempDir(), environ
	out, err := validate.Output()
	if err != nil {
		t.Fatalf("validate: %v\n%s", err, out)
	}
	var found struct {
		OK     bool
		Online struct {
			Observers []struct {
				Observer  string
				Reachable bool
				Sample    []json.RawMessage
			}
			Findings []struct{ Severity, Subject, Text string }
		}
	}
	must(t, json.Unmarshal(out, &found))
	if !found.OK || len(found.Online.Observers) != 3 {
		t.Errorf("validate says\n%s", out)
	}
	for _, observer := range found.Online.Observers {
		if !observer.Reachable || len(observer.Sample) == 0 {
			t.Errorf("%s: reachable %t, %d events", observer.Observer, observer.Reachable, len(observer.Sample))
		}
	}
	for _, f := range found.Online.Findings {
		t.Errorf("%s: %s: %s", f.Severity, f.Subject, f.Text)
	}
}

// TestOracleIsObserved runs the node of the profile, and rounds of traffic.sql.
func TestOracleIsObserved(t *testing.T) {
	t.Parallel()
	o := openOracle(t)
	environ, config := o.environ(t)
	crew := newCrew(t)
	crew.join(t, "node-oracle", absolute(t, config), environ)
	crew.tell(t, "NewOrderObservedEvent", 3)
	crew.tell(t, "InventoryObservedEvent", 3)
	crew.tell(t, "WesTaskPolledEvent", 2)
	traffic := o.project.Services["oracle-traffic"]
	const rounds = 3
	for range rounds {
		for _, line := range hereDocument(t, mounted(t, traffic, "/sql/traffic.sh")) {
			if strings.HasPrefix(line, "@") {
				o.follow(t, traffic, line)
			}
		}
	}
	// A new order and a new task a round; and the stock of the bolts changes, of
	// which a snapshot sees the last state alone.
	crew.tell(t, "NewOrderObservedEvent", 3+rounds)
	crew.tell(t, "InventoryObservedEvent", 3+2)
	crew.tell(t, "WesTaskPolledEvent", 2+rounds)
	crew.stop(t)
	crew.checkOnce(t)
}

// TestOracleTrafficHasNoEnd plays rounds for long: nothing piles up, and what is
// older than a day goes.
func TestOracleTrafficHasNoEnd(t *testing.T) {
	t.Parallel()
	o := openOracle(t)
	old := "SYS_EXTRACT_UTC(SYSTIMESTAMP) - INTERVAL '2' DAY"
	o.exec(t, "UPDATE orders SET status = 'shipped', updated_at = "+old+" WHERE order_id = 1")
	o.exec(t, "UPDATE wes_tasks SET status = 'done', updated_at = "+old+" WHERE task_id = 1")
	traffic := o.project.Services["oracle-traffic"]
	for range 20 {
		o.run(t, mounted(t, traffic, "/sql/traffic.sql"))
	}
	for statement, most := range map[string]int{
		"SELECT order_id FROM orders WHERE status <> 'shipped'": 5,
		"SELECT task_id FROM wes_tasks WHERE status <> 'done'":  5,
		"SELECT order_id FROM orders WHERE order_id = 1":        0,
		"SELECT task_id FROM wes_tasks WHERE task_id = 1":       0,
	} {
		rows, err := o.engine.Query(oracleSchema, statement)
		must(t, err)
		if len(rows) > most {
			t.Errorf("%s: %d rows, want at most %d", statement, len(rows), most)
		}
	}
}

// TestShellScripts has the shell read the scripts that only run in the image of
// Oracle, without running them.
func TestShellScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "deploy", "compose", "*", "*.sh"))
	must(t, err)
	if len(scripts) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, path := range scripts {
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s cannot be executed: %v", path, err)
		}
	}
}
