package compose_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// playground is the database server of docker-compose.yml, as far as it is ours:
// a new PostgreSQL on which the script has run that the service mounts.
type playground struct {
	project *types.Project
	server  *pgtest.Server
}

func openPlayground(t *testing.T) playground {
	t.Helper()
	p := playground{load(t, nil), pgtest.Start(t, pgtest.Options{})}
	service := p.project.Services["postgres"]
	path := mounted(t, service, "/docker-entrypoint-initdb.d/warehouse.sql")
	// The script names the grants from where it lies, here and in the container.
	for _, name := range []string{"postgres.sql", "coordination.sql"} {
		if script := mounted(t, service, "/sql/"+name); !strings.HasSuffix(script, "/deploy/sql/"+name) {
			t.Errorf("%s is %s", name, script)
		}
	}
	// As the entry point of the image does.
	init := script(t, environment(t, service), "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "--no-password", "-f", path, p.server.URL("postgres"))
	if code := init.ExitCode(); code != 0 {
		t.Fatalf("psql: exit code %d", code)
	}
	p.migrate(t)
	return p
}

// migrate does what the service of that name does, which the nodes wait for.
func (p playground) migrate(t *testing.T) {
	t.Helper()
	service := p.project.Services[once]
	environ := environment(t, service)
	for _, variable := range environ {
		if url, ok := strings.CutPrefix(variable, databaseURL); ok {
			if code, log := p.command(t, p.here(t, url, environ), service.Command...); code != 0 {
				t.Fatalf("migrate ends with %d:\n%s", code, log)
			}
			return
		}
	}
	t.Fatal("the service migrate has no URL")
}

const databaseURL = "OBSERVERD_DATABASE_URL="

// command runs observerd as a node would, but with this URL.
func (p playground) command(t *testing.T, url string, args ...string) (code int, log string) {
	t.Helper()
	service := p.project.Services["node-a"]
	environ := slices.DeleteFunc(environment(t, service), func(v string) bool { return strings.HasPrefix(v, databaseURL) })
	var said bytes.Buffer
	m, err := launch(t, daemon.Options{
		Binary: binary(t), Name: args[0], Folder: t.TempDir(), Env: append(environ, databaseURL+url), Stdout: &said,
		Args: append([]string{"--config", mounted(t, service, configPath)}, args...),
	})
	must(t, err)
	code = m.ExitCode()
	return code, said.String() + m.Log.String()
}

// here returns a URL of a configuration with the address of the real server in it.
func (p playground) here(t *testing.T, text string, environ []string) string {
	t.Helper()
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	u, err := url.Parse(text)
	must(t, err)
	if u.Host != "postgres:5432" {
		t.Fatalf("the configuration asks for %s", u.Host)
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.server.Port()))
	return u.String()
}

// traffic starts what the service of that name starts.
func (p playground) traffic(t *testing.T) {
	t.Helper()
	service := p.project.Services["traffic"]
	args := slices.Clone([]string(service.Entrypoint[1:]))
	for i, arg := range args {
		if target, ok := strings.CutPrefix(arg, "--file="); ok {
			args[i] = "--file=" + mounted(t, service, target)
		}
	}
	var environ []string
	for _, variable := range environment(t, service) {
		if variable == "PGHOST=postgres" {
			variable = "PGHOST=127.0.0.1"
		}
		environ = append(environ, variable)
	}
	script(t, append(environ, "PGPORT="+strconv.Itoa(p.server.Port())), args...)
}

// TestThreeNodes starts what docker-compose.yml starts, without the containers:
// the server with its scripts, the traffic, and three daemons with the mounted
// configuration, of which only addresses and the interval are others.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	p := openPlayground(t)
	crew := newCrew(t)
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		service := p.project.Services[name]
		environ := environment(t, service)
		cfg := parsed(t, mounted(t, service, configPath))
		crew.join(t, name, mounted(t, service, configPath), append(environ,
			"OBSERVERD_NODE_NAME="+service.Hostname,
			"OBSERVERD_DATABASE_URL="+p.here(t, cfg.Database.URL, environ),
			"OBSERVERD_SOURCES_WAREHOUSE_URL="+p.here(t, cfg.Sources["warehouse"].URL, environ)))
	}
	p.traffic(t)
	// The rows of warehouse.sql, and those that only traffic.sql brings.
	crew.tell(t, "NewOrderObservedEvent", 3+2)
	crew.tell(t, "InventoryObservedEvent", 3+2)
	crew.tell(t, "WesTaskPolledEvent", 2+4)
	for name, node := range crew.nodes {
		eventually(t, func() error {
			m, err := node.Metrics(t.Context())
			if err != nil {
				return err
			}
			return failedIf(m.Sum("scheduler_observer_lock_acquired_total") == 0, "%s has had no turn", name)
		})
	}
	crew.stop(t)
	crew.checkOnce(t)
}

// TestTheReaderOnlyReads tries what the account of the source must not do.
func TestTheReaderOnlyReads(t *testing.T) {
	t.Parallel()
	p := openPlayground(t)
	environ := environment(t, p.project.Services["node-a"])
	cfg := parsed(t, mounted(t, p.project.Services["node-a"], configPath))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.here(t, cfg.Sources["warehouse"].URL, environ))
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	var n int
	must(t, conn.QueryRow(ctx, "SELECT count(*) FROM orders, inventory, wes_tasks").Scan(&n))
	if n == 0 {
		t.Error("the warehouse is empty")
	}
	for _, statement := range []string{
		"DELETE FROM orders", "CREATE TABLE mine (n INT)", "SET ROLE shop",
		"SET default_transaction_read_only = off; DELETE FROM orders",
	} {
		if _, err := conn.Exec(ctx, statement); err == nil {
			t.Errorf("the reader may %s", statement)
		}
	}
}

// TestRolesOfTheCoordination has the nodes' role and the one that reads do what they
// are for, and no more.
func TestRolesOfTheCoordination(t *testing.T) {
	t.Parallel()
	p := openPlayground(t)
	node := environment(t, p.project.Services["node-a"])
	nodes := p.here(t, parsed(t, mounted(t, p.project.Services["node-a"], configPath)).Database.URL, node)
	account, err := url.Parse(nodes)
	must(t, err)
	account.User = url.UserPassword("observerd_read", "dashboard")
	reader := account.String()
	if code, log := p.command(t, nodes, "doctor", "--watch", "0s", "-o", "json"); code != 0 || !strings.Contains(log, "nobody but the owner puts anything into the schemas of the search_path (observerd)") {
		t.Errorf("doctor ends with %d:\n%s", code, log)
	}
	if code, log := p.command(t, reader, "status"); code != 0 {
		t.Errorf("status of the role that reads ends with %d:\n%s", code, log)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for account, refused := range map[string][]string{
		nodes:  {"CREATE TABLE mine (n INT)", "CREATE TABLE public.mine (n INT)", "TRUNCATE obs_event", "ALTER TABLE obs_event ADD mine INT", "DROP TABLE obs_event"},
		reader: {"DELETE FROM obs_event", "SELECT nextval('obs_fence')"},
	} {
		conn, err := pgx.Connect(ctx, account)
		must(t, err)
		var n int
		must(t, conn.QueryRow(ctx, "SELECT count(*) FROM obs_event, int_lock").Scan(&n))
		for _, statement := range refused {
			if _, err := conn.Exec(ctx, statement); err == nil {
				t.Errorf("%s may %s", conn.Config().User, statement)
			}
		}
		must(t, conn.Close(ctx))
	}
}
