package cluster_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/servertest"
)

// oraclePassword has what a URL would have to encode.
const oraclePassword = "p@ss/w:rd %#?&+"

// oracle is an emulated database with a market in it, which may be down.
type oracle struct {
	market
	engine *engine.Engine
	server *oratest.Server
	port   int
}

// openOracle starts a database on a port that stays its own while it is down.
func openOracle(t *testing.T) *oracle {
	t.Helper()
	o := &oracle{engine: engine.New(engine.Options{})}
	err := servertest.StartOnFreePort(t.Context(), func(port int) error {
		o.port = port
		return o.listen(oraclePassword)
	})
	must(t, err)
	t.Cleanup(func() { o.server.Close() })
	o.market = oracleMarket(o.engine)
	o.furnish(t, o.engine)
	o.fill(t, o.say.put, `INSERT INTO tasks (status, task_id, updated_at, note) VALUES (:1, :2, SYSTIMESTAMP, 'none')`)
	return o
}

// listen starts the server, for the engine of the moment.
func (o *oracle) listen(password string) error {
	server, err := oratest.Open(oratest.Options{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)),
		Users:   map[string]string{"reader": password}, Handler: o.engine,
	})
	if err == nil {
		o.server = server
	}
	return err
}

// up lets the database answer again after its server was closed. The port may
// take a moment to be free.
func (o *oracle) up(t *testing.T) {
	t.Helper()
	eventually(t, func() error { return o.listen(oraclePassword) })
}

// furnish makes the tables, and the account that deploy/sql grants.
func (o *oracle) furnish(t *testing.T, e *engine.Engine) {
	t.Helper()
	for _, text := range append([]string{
		"CREATE TABLE orders (order_id VARCHAR2(40) PRIMARY KEY, status VARCHAR2(40) NOT NULL, updated_at DATE NOT NULL)",
		"CREATE TABLE tasks (task_id VARCHAR2(40) PRIMARY KEY, status VARCHAR2(40) NOT NULL, updated_at TIMESTAMP(6) NOT NULL, note VARCHAR2(40))",
		"CREATE TABLE stock (sku VARCHAR2(40) PRIMARY KEY, status VARCHAR2(40) NOT NULL)",
		"CREATE INDEX orders_by_time ON orders (updated_at, order_id)",
		"CREATE INDEX tasks_by_time ON tasks (updated_at, task_id)",
	}, oracleGrants(t, "ORDERS", "TASKS", "STOCK")...) {
		if err := e.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// oracleGrants are the statements of deploy/sql for the account, as SQL*Plus
// would send them, with the grant of a table for each.
func oracleGrants(t *testing.T, tables ...string) []string {
	t.Helper()
	values := strings.NewReplacer("&reader.", "READER", "&reader", "READER", "&password", "known to the server", "&owner.", "APP")
	var statements []string
	for _, s := range deployed(t, "oracle.sql") {
		s = values.Replace(s)
		if !strings.Contains(s, "&table") {
			statements = append(statements, s)
			continue
		}
		for _, table := range tables {
			statements = append(statements, strings.ReplaceAll(s, "&table", table))
		}
	}
	return statements
}

// deployed are the statements of a file of deploy/sql, without comments and
// what SQL*Plus keeps for itself.
func deployed(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", name))
	must(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "DEFINE ") {
			lines = append(lines, line)
		}
	}
	var statements []string
	for _, s := range strings.Split(strings.Join(lines, ""), ";") {
		if s = strings.TrimSpace(s); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// oracleMarket is the market of an engine.
func oracleMarket(e *engine.Engine) market {
	return market{
		begin: func() (deal, error) {
			tx := e.Begin()
			return deal{tx.Exec, func(commit bool) error {
				if commit {
					tx.Commit()
				} else {
					tx.Rollback()
				}
				return nil
			}}, nil
		},
		query: func(t *testing.T, text string) [][]string {
			t.Helper()
			found, err := e.Query("APP", text)
			must(t, err)
			rows := make([][]string, len(found))
			for i, row := range found {
				for _, v := range row {
					rows[i] = append(rows[i], fmt.Sprint(v))
				}
			}
			return rows
		},
		say: sayings{
			order:  `INSERT INTO orders (order_id, status, updated_at) VALUES (:1, 'NEW', SYSDATE)`,
			task:   `UPDATE tasks SET status = :1, updated_at = SYSTIMESTAMP WHERE task_id = :2`,
			change: `UPDATE stock SET status = :1 WHERE sku = :2`,
			put:    `INSERT INTO stock (status, sku) VALUES (:1, :2)`,
			drop:   `DELETE FROM stock WHERE sku = :1`,
		},
	}
}

// host makes a host for nodes that read the database.
func (o *oracle) host(t *testing.T, m memory) abroad {
	t.Helper()
	u := url.URL{Scheme: "oracle", User: url.User("reader"), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)), Path: "/ORCLPDB1"}
	h := newHost(t, m, u.String())
	h.owner = "app."
	return abroad{h}
}

// restored is the database as a backup has it: another incarnation, with the
// rows that were in the tables when the copy was taken.
func (o *oracle) restored(t *testing.T) *engine.Engine {
	t.Helper()
	copied := engine.New(engine.Options{})
	o.furnish(t, copied)
	identity := o.engine.Database()
	identity.ResetlogsChange++
	copied.SetDatabase(identity)
	for _, table := range []struct{ read, write string }{
		{
			`SELECT order_id, status, TO_CHAR(updated_at, 'YYYY-MM-DD HH24:MI:SS') FROM orders`,
			`INSERT INTO orders (order_id, status, updated_at) VALUES (:1, :2, TO_DATE(:3, 'YYYY-MM-DD HH24:MI:SS'))`,
		},
		{
			`SELECT task_id, status, TO_CHAR(updated_at, 'YYYY-MM-DD HH24:MI:SS.FF6'), note FROM tasks`,
			`INSERT INTO tasks (task_id, status, updated_at, note) VALUES (:1, :2, TO_TIMESTAMP(:3, 'YYYY-MM-DD HH24:MI:SS.FF6'), :4)`,
		},
		{`SELECT sku, status FROM stock`, `INSERT INTO stock (sku, status) VALUES (:1, :2)`},
	} {
		rows, err := o.engine.Query("APP", table.read)
		must(t, err)
		for _, row := range rows {
			must(t, copied.Exec(table.write, row...))
		}
	}
	return copied
}
