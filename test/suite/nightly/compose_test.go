//go:build nightly

package nightly_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/status"
)

// inNodeA runs a command of observerd in a node.
const inNodeA = "docker compose exec -T node-a observerd -c /etc/observerd/config.yaml "

// TestComposeFileOnARealEngine runs docker-compose.yml, as it is and as docs/installation.md
// says, on Docker itself: what a copy of its rules cannot tell.
func TestComposeFileOnARealEngine(t *testing.T) {
	needRoot(t)
	e := startEngine(t)
	c := newCheckout(t, "022")
	e.dir = c.dir
	upgrade, next := documentedUpgrade(t, e)
	e.standIns(t, c, firstVersion, next)

	e.do(t, "sed 's/^OBSERVERD_VERSION=.*/OBSERVERD_VERSION="+firstVersion+"/' .env.example > .env")
	e.do(t, "docker compose build node-a && docker compose up --detach --no-build --wait")
	e.runs(t, firstVersion)
	t.Run("a wrong password", func(t *testing.T) { testWrongPassword(t, e) })
	t.Run("Prometheus", func(t *testing.T) { testPrometheus(t, e) })

	// Its updates would make more events of an order.
	e.do(t, "docker compose stop traffic")
	killed := e.holder(t)
	e.order(t, 2_000)
	e.do(t, "docker compose kill "+killed)
	e.order(t, 2_000)
	e.events(t, 4_000)
	e.do(t, "docker compose start "+killed)
	e.order(t, 2_000)
	e.do(t, upgrade)
	e.runs(t, next)
	e.order(t, 2_000)
	e.events(t, 8_000)

	e.do(t, "docker compose --profile '*' down --volumes")
	if left := e.do(t, "docker ps --all --quiet; docker volume ls --quiet; docker network ls --quiet --filter type=custom"); left != "" {
		t.Errorf("down --volumes has left:\n%s", left)
	}
}

// documentedUpgrade returns the commands of docs/installation.md, and the version to
// which they lead. A command that fails ends them.
func documentedUpgrade(t *testing.T, e engine) (commands, version string) {
	t.Helper()
	_, text, _ := strings.Cut(e.do(t, "cat docs/installation.md"), "\n**Upgrade** node by node")
	_, text, _ = strings.Cut(text, "```console\n")
	text, _, found := strings.Cut(text, "\n```")
	_, version, _ = strings.Cut(text, "/OBSERVERD_VERSION=")
	version, _, _ = strings.Cut(version, "/")
	if !found || version == "" {
		t.Fatalf("docs/installation.md has no commands for an upgrade, but:\n%s", text)
	}
	for line := range strings.Lines(text) {
		commands += strings.Replace(strings.TrimPrefix(line, "$ "), "|| break", "|| exit 1", 1)
	}
	return commands, version
}

// runs asserts that all nodes are healthy and of a version.
func (e engine) runs(t *testing.T, version string) {
	t.Helper()
	for _, node := range []string{"node-a", "node-b", "node-c"} {
		health := e.do(t, "docker inspect --format '{{.State.Health.Status}} {{.Config.User}}' $(docker compose ps --quiet "+node+")")
		got := e.do(t, "docker compose exec -T "+node+" observerd version")
		if health != "healthy 65532:65532" || !strings.HasPrefix(got, "observerd "+version+" (") {
			t.Errorf("%s is %s and runs %s; want %s", node, health, got, version)
		}
	}
}

// testWrongPassword gives it to one node. `up --wait` fails, and succeeds with the right one.
func testWrongPassword(t *testing.T, e engine) {
	_, err := e.try(t, `echo 'services: {node-c: {environment: {DATABASE_PASSWORD: wrong}}}' |
		docker compose -f docker-compose.yml -f - up --detach --no-build --wait node-c`)
	if err == nil || !strings.Contains(err.Error(), "node-c-1 is unhealthy") {
		t.Errorf("up --wait with a node that has a wrong password: %v", err)
	}
	e.do(t, "docker compose up --detach --no-build --wait node-c")
}

// testPrometheus lets it watch the nodes, with its mounted configuration and rules.
func testPrometheus(t *testing.T, e engine) {
	e.do(t, "docker compose up --detach --no-deps prometheus")
	until(t, "Prometheus to watch three nodes", func() error {
		out, err := e.try(t, `docker compose exec -T prometheus promtool query instant http://127.0.0.1:9090 'sum(up{job="observerd"})'`)
		if err == nil && !strings.HasPrefix(out, "{} => 3 ") {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
}

// order puts so many orders into the warehouse.
func (e engine) order(t *testing.T, n int) {
	t.Helper()
	e.do(t, "docker compose exec -T postgres psql --quiet -v ON_ERROR_STOP=1 -U postgres warehouse -c "+
		`"INSERT INTO orders (customer, status) SELECT 'nightly', 'shipped' FROM generate_series(1, `+strconv.Itoa(n)+`)"`)
}

// holder returns the node that writes the file.
func (e engine) holder(t *testing.T) (node string) {
	t.Helper()
	until(t, "a node to write the file", func() error {
		var report struct {
			Sinks []status.Sink `json:"sinks"`
		}
		out, err := e.try(t, inNodeA+"status -o json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &report)
		}
		for _, s := range report.Sinks {
			if s.Stream == "warehouse-orders" {
				node = s.Node
			}
		}
		if err == nil && node == "" {
			err = fmt.Errorf("it is fed by no node: %+v", report.Sinks)
		}
		return err
	})
	return node
}

// events waits until so many of these orders are in the file, and asserts that each is
// there once.
func (e engine) events(t *testing.T, want int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events.jsonl")
	var orders, lines int
	until(t, fmt.Sprintf("%d orders to be events", want), func() error {
		e.do(t, "docker compose cp node-a:/var/lib/observerd/events.jsonl "+file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines = 0
		numbers := make(map[int]bool)
		for line := range strings.Lines(string(text)) {
			var event struct {
				Data struct {
					Number   int `json:"order_id"`
					Customer string
				}
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				return err // It is being written.
			}
			if event.Data.Customer == "nightly" {
				lines++
				numbers[event.Data.Number] = true
			}
		}
		if orders = len(numbers); orders < want {
			return fmt.Errorf("%d orders are events", orders)
		}
		return nil
	})
	t.Logf("%d events of %d orders", lines, orders)
	if orders != want || lines != want {
		t.Errorf("%d orders became %d events of %d orders", want, lines, orders)
	}
}
