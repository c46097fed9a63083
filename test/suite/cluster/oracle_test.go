package cluster_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// beyond is well behind the horizon that a source without open transactions
// would have.
const beyond = 7 * time.Second

// TestOracleThroughAKill lets two nodes poll an Oracle in the midst of writers,
// kills the one whose read of the orders has stopped half-way, and starts it
// again. One order is committed when the stream is far beyond its time.
func TestOracleThroughAKill(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	began := time.Now()
	commit := o.late(t, "late")
	nodes := h.pair(t, oraclePassword)
	quiet := o.busy(t)
	hang := o.server.On(oratest.SQL("/* observerd:orders */"), oratest.Fault{At: oratest.Fetching, Hang: true, Skip: 3, Times: 1})
	received(t, hang.Reached(), "the read that hangs")
	name, err := m.pollsNow(t, "order")
	must(t, err)
	nodes[name].Kill()
	hang.Release()
	o.do(t, o.say.order, "after the kill")
	m.told(t, "orders", "after the kill")
	nodes[name] = h.start(t, name, oraclePassword).ready(t)
	passes(t, began, beyond)
	o.do(t, o.say.order, "beyond the late one")
	m.told(t, "orders", "beyond the late one")
	commit()
	quiet()
	checkToldOnce(t, m, h.sink(), o.rows(t))
	if n := o.server.FailedLogons(); n != 0 {
		t.Errorf("%d logons failed", n)
	}
}

// passes waits until so much time has gone by since an instant.
func passes(t *testing.T, since time.Time, d time.Duration) {
	t.Helper()
	eventually(t, func() error {
		if left := d - time.Since(since); left > 0 {
			return fmt.Errorf("%s left", left)
		}
		return nil
	})
}

// TestOracleAccountIsLocked locks the account over there, unlocks it and resumes
// one of its observers: the others follow.
func TestOracleAccountIsLocked(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	nodes := h.pair(t, oraclePassword)
	checkHistory(t, m, h.sink(), o.rows(t))
	o.server.SetLocked("reader", true)
	o.leavesAlone(t, h, nodes, "ORA-28000", 6)
	o.server.SetLocked("reader", false)
	o.do(t, o.say.order, "fixed")
	o.do(t, o.say.change, "fixed", "sku-02")
	o.do(t, o.say.task, "fixed", "task-02")
	h.command(t, "a", "observers", "resume", "orders")
	checkHistory(t, m, h.sink(), o.rows(t))
}

// TestOraclePasswordIsChanged changes the password, which the nodes are told one
// after the other.
func TestOraclePasswordIsChanged(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	nodes := h.pair(t, oraclePassword)
	checkHistory(t, m, h.sink(), o.rows(t))
	const changed = "another p@ss"
	o.server.SetPassword("reader", changed)
	o.leavesAlone(t, h, nodes, "ORA-01017", 20)
	before := o.server.FailedLogons()
	for _, name := range []string{"a", "b"} {
		nodes[name].stops(t)
		nodes[name] = h.start(t, name, changed).ready(t)
		o.do(t, o.say.order, "told to "+name)
		checkHistory(t, m, h.sink(), o.rows(t))
	}
	if n := o.server.FailedLogons(); n != before {
		t.Errorf("%d more logons were refused when one node after the other had the new password", n-before)
	}
}

// TestOracleTwoWrongPasswords has two nodes with two wrong passwords, of which each
// is tried once, whoever is started again, until one of them has the right one.
func TestOracleTwoWrongPasswords(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	wrong := map[string]string{"a": "wrong", "b": "typo"}
	nodes := make(map[string]*daemon)
	for name, password := range wrong {
		nodes[name] = h.start(t, name, password).ready(t)
	}
	for name := range wrong {
		eventually(t, func() error { return h.says(t, "oracle://", "reader", " "+name+" ", "ORA-01017") })
	}
	pass(t, nodes, 30)
	for name, password := range wrong {
		nodes[name].Kill()
		nodes[name] = h.start(t, name, password).ready(t)
	}
	pass(t, nodes, 30)
	nodes["a"].stops(t)
	nodes["a"] = h.start(t, "a", oraclePassword).ready(t)
	checkHistory(t, m, h.sink(), o.rows(t))
	pass(t, nodes, 20)
	if n := o.server.FailedLogons(); n != len(wrong) {
		t.Errorf("%d logons were refused, want one of each wrong password", n)
	}
	for _, d := range nodes {
		healthy(t, d)
	}
}

// leavesAlone ends the sessions of an account that may not log on any more, and
// looks at what the nodes make of that in their next turns, of all types.
func (o *oracle) leavesAlone(t *testing.T, h abroad, nodes map[string]*daemon, code string, turns int) {
	t.Helper()
	o.server.Cut()
	before := o.server.FailedLogons() // Not those whose answer was cut off.
	eventually(t, func() error { return h.says(t, "oracle://", "reader", code) })
	for _, observer := range []string{"orders", "stock", "tasks"} {
		eventually(t, func() error { return h.says(t, observer, "backoff", "credentials", code) })
	}
	pass(t, nodes, float64(turns))
	if n := o.server.FailedLogons() - before; n == 0 || n > len(nodes) {
		t.Errorf("%s: %d logons were refused in %d turns, want 1 to %d", code, n, turns, len(nodes))
	}
	for _, d := range nodes {
		healthy(t, d)
	}
}

// TestOracleComesBack takes the listener away and brings it back, first with the
// database that it was, then with one that was restored from a backup.
func TestOracleComesBack(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	nodes := h.pair(t, oraclePassword)
	o.do(t, o.say.order, "before")
	checkHistory(t, m, h.sink(), o.rows(t))

	o.server.Close()
	for _, d := range nodes {
		eventually(t, func() error {
			return d.counted(t, "observerd_source_failures_total", `class="unreachable"`)
		})
	}
	eventually(t, func() error { return h.says(t, "orders", "unreachable") })
	o.do(t, o.say.order, "while it was down")
	o.up(t)
	checkHistory(t, m, h.sink(), o.rows(t))

	backup := o.restored(t)
	o.do(t, o.say.order, "lost by the restore")
	o.do(t, o.say.task, "undone by the restore", "task-03")
	o.do(t, o.say.drop, "sku-05")
	checkHistory(t, m, h.sink(), o.rows(t))
	o.server.Close()
	o.engine, o.market = backup, oracleMarket(backup)
	o.do(t, o.say.order, "after the restore")
	o.do(t, o.say.task, "again", "task-04")
	// Far below the marks that the nodes have, where only a new beginning looks.
	o.do(t, `INSERT INTO orders (order_id, status, updated_at) VALUES (:1, 'NEW', SYSDATE - 1/24)`, "brought back")
	o.do(t, `UPDATE tasks SET status = :1, updated_at = SYSTIMESTAMP - INTERVAL '1' HOUR WHERE task_id = :2`, "as it was", "task-05")
	o.up(t)
	rows := o.rows(t)
	rows["orders"]["lost by the restore"] = "NEW" // It was an order, once.
	checkToldOnce(t, m, h.sink(), rows)
	announced := 0
	for _, d := range nodes {
		announced += d.Log.Count("Source is another database than the cursor knows")
	}
	if announced < 2 { // one for each stream with marks
		t.Errorf("the restored database was announced %d times", announced)
	}
}

// TestOracleColumnIsDropped takes a column away that events carry.
func TestOracleColumnIsDropped(t *testing.T) {
	t.Parallel()
	m, o := remember(t, pgtest.New(t)), openOracle(t)
	h := o.host(t, m)
	nodes := h.pair(t, oraclePassword)
	checkHistory(t, m, h.sink(), o.rows(t))

	must(t, o.engine.Exec("ALTER TABLE tasks DROP COLUMN note"))
	eventually(t, func() error { return h.says(t, "tasks", "backoff", `"NOTE"`, "missing") })
	o.do(t, o.say.task, "without a note", "task-01")
	o.do(t, o.say.order, "meanwhile")
	o.do(t, o.say.change, "less", "sku-07")
	m.told(t, "orders", "meanwhile")
	m.says(t, "stock", "sku-07", "less")
	pass(t, nodes, 6)
	log, err := m.logged(t)
	must(t, err)
	if said := lastStatus(log, "tasks"); said["task-01"] != "open" || len(said) != chores {
		t.Errorf("an observer that has stopped says %v", maps.Clone(said))
	}
	h.command(t, "b", "observers", "reset", "tasks", "--keep-cursor", "--yes")
	m.says(t, "tasks", "task-01", "without a note")
	checkHistory(t, m, h.sink(), o.rows(t))
	if err := h.says(t, "tasks", "active"); err != nil {
		t.Error(err)
	}
}
