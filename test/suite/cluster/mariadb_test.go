package cluster_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// mariadb is a database with a market in it, and the account that deploy/sql
// grants.
type mariadb struct {
	market
	url            string // of the owner
	user, password string
}

func openMariaDB(t *testing.T) mariadb {
	t.Helper()
	d := mariadb{url: mariatest.New(t), user: "reader_" + strings.ToLower(rand.Text())[:16], password: rand.Text()}
	d.market = mariaMarket(t, d.url)
	owner := mariatest.Connect(t, d.url, nil)
	d.run(t, owner, `
		CREATE TABLE orders (order_id varchar(40) PRIMARY KEY, status varchar(40) NOT NULL, updated_at datetime NOT NULL, KEY (updated_at, order_id));
		CREATE TABLE tasks (task_id varchar(40) PRIMARY KEY, status varchar(40) NOT NULL,
		  updated_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), KEY (updated_at, task_id));
		CREATE TABLE stock (sku varchar(40) PRIMARY KEY, status varchar(40) NOT NULL)`)
	t.Cleanup(func() { d.run(t, mariatest.Connect(t, d.url, nil), "DROP USER '"+d.user+"'@'%'") })
	u, err := url.Parse(d.url)
	must(t, err)
	values := strings.NewReplacer("'observerd'", "'"+d.user+"'", "'change-me'", "'"+d.password+"'", "`shop`", "`"+strings.TrimPrefix(u.Path, "/")+"`")
	for _, s := range deployed(t, "mysql.sql") {
		s = values.Replace(s)
		d.run(t, owner, s)
		if strings.Contains(s, "`orders`") { // One line for each table.
			d.run(t, owner, strings.ReplaceAll(s, "`orders`", "`tasks`"))
		}
	}
	d.fill(t, d.say.put, `INSERT INTO tasks (status, task_id) VALUES (?, ?)`)
	return d
}

func (d mariadb) run(t *testing.T, conn *sql.Conn, text string, args ...any) {
	t.Helper()
	// Also after the end of the test.
	if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), text, args...); err != nil {
		t.Fatal(err)
	}
}

// mariaMarket is the market of a database.
func mariaMarket(t *testing.T, databaseURL string) market {
	t.Helper()
	u, err := url.Parse(databaseURL)
	must(t, err)
	password, _ := u.User.Password()
	db := openSQL(t, "mysql", fmt.Sprintf("%s:%s@tcp(%s)%s", u.User.Username(), password, u.Host, u.Path))
	return sqlMarket(t, "mysql", db, sayings{
		order:  `INSERT INTO orders (order_id, status, updated_at) VALUES (?, 'NEW', NOW())`,
		task:   `UPDATE tasks SET status = ? WHERE task_id = ?`,
		change: `UPDATE stock SET status = ? WHERE sku = ?`,
		put:    `INSERT INTO stock (status, sku) VALUES (?, ?)`,
		drop:   `DELETE FROM stock WHERE sku = ?`,
	})
}

// host makes a host for nodes that read the database at that address.
func (d mariadb) host(t *testing.T, m memory, direct string) abroad {
	t.Helper()
	u, err := url.Parse(direct)
	must(t, err)
	u.User = url.User(d.user)
	return abroad{newHost(t, m, u.String())}
}

// TestMariaDBThroughAKill lets two nodes poll a MariaDB in the midst of writers,
// kills the one that is in the middle of the orders while the network is slow,
// and starts it again. One order is committed when the stream is far beyond its
// time.
func TestMariaDBThroughAKill(t *testing.T) {
	t.Parallel()
	m, d := remember(t, pgtest.New(t)), openMariaDB(t)
	const backlog = 1000
	d.run(t, mariatest.Connect(t, d.url, nil), `
		INSERT INTO orders SELECT CONCAT('early-', LPAD(seq, 4, '0')), 'NEW', NOW() - INTERVAL 1 HOUR + INTERVAL seq DIV 7 SECOND FROM seq_1_to_1000`)
	proxied, proxy := netfault.StartBefore(t, d.url)
	proxy.SetImpairment(netfault.Impairment{Bandwidth: 10_000}) // The orders take some seconds.
	h := d.host(t, m, proxied)
	began := time.Now()
	commit := d.late(t, "late")
	nodes := h.pair(t, d.password)
	quiet := d.busy(t)
	m.becomes(t, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`)
	var name string
	eventually(t, func() (err error) {
		name, err = m.pollsNow(t, "order")
		return err
	})
	nodes[name].Kill()
	slowed := proxy.Stats().Slowed
	proxy.SetImpairment(netfault.Impairment{})
	committed, err := m.number(t, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`)
	if err != nil || committed >= backlog || slowed == 0 {
		t.Fatalf("%d of %d orders were committed at the kill (%v): it was not between two chunks", committed, backlog, err)
	}
	t.Logf("%d of %d orders were committed at the kill", committed, backlog)
	d.do(t, d.say.order, "after the kill")
	m.told(t, "orders", "after the kill")
	nodes[name] = h.start(t, name, d.password).ready(t)
	passes(t, began, beyond)
	d.do(t, d.say.order, "beyond the late one")
	m.told(t, "orders", "beyond the late one")
	commit()
	quiet()
	checkToldOnce(t, m, h.sink(), d.rows(t))
}

// TestMariaDBInThePlaceOfAnother restarts one of two nodes with a file whose source is
// another database of the same server, which MariaDB's identity does not tell. All its
// timestamps are older than the marks of the former one.
func TestMariaDBInThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	m, former, next := remember(t, pgtest.New(t)), openMariaDB(t), openMariaDB(t)
	former.do(t, former.say.order, "of the former")
	next.run(t, mariatest.Connect(t, next.url, nil), `
		INSERT INTO orders SELECT CONCAT('early-', LPAD(seq, 2, '0')), 'NEW', NOW() - INTERVAL 1 DAY + INTERVAL seq DIV 7 SECOND FROM seq_1_to_40;
		UPDATE tasks SET status = 'done', updated_at = NOW(3) - INTERVAL 1 DAY`)
	h := former.host(t, m, former.url)
	nodes := h.pair(t, former.password)
	rows := former.rows(t)
	checkToldOnce(t, m, h.sink(), rows)

	nodes["a"].stops(t)
	h.source = next.host(t, m, next.url).source
	nodes["a"] = h.start(t, "a", next.password).ready(t)
	for stream, all := range next.rows(t) {
		maps.Copy(rows[stream], all)
	}
	checkToldOnce(t, m, h.sink(), rows)

	// The other node has the former file. It leaves the observers alone.
	for _, stream := range []string{"orders", "tasks", "stock"} {
		eventually(t, func() error {
			return nodes["b"].counted(t, "observerd_observer_outdated", `observer="`+stream+`"`)
		})
	}
	former.do(t, former.say.order, "of the former, later")
	next.do(t, next.say.order, "of the next, later")
	rows["orders"]["of the next, later"] = "NEW"
	m.told(t, "orders", "of the next, later")
	pass(t, nodes, 6)
	checkToldOnce(t, m, h.sink(), rows)
	if err := polledTwice(m.mustPolls(t)); err != nil {
		t.Error(err)
	}
	if n := nodes["a"].Log.Count("Source is another database", `"stream":"orders"`); n != 1 {
		t.Errorf("the orders were read from their beginning %d times", n)
	}
}
