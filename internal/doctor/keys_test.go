package doctor_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// take has a node of ours take and release the lock of the orders.
func take(t *testing.T, db *lockdb.DB, node string, format lockdb.KeyFormat, ttl time.Duration) {
	t.Helper()
	g, err := db.Leases().Acquire(t.Context(), lock.Request{
		Key: lockdb.Key(format, orderLock), Region: "DEFAULT", TTL: ttl, Name: orderLock, Node: node,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Leases().Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// TestKeysThatDiffer covers everything by which nodes lock different rows.
func TestKeysThatDiffer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		db := p.observerd(t)
		take(t, db, "a", lockdb.KeySpring, time.Minute)
		says(t, p.examine(t, 0), "keys", doctor.OK)
		take(t, db, "b", lockdb.KeyPlain, time.Minute)
		says(t, p.examine(t, 0), "keys", doctor.Problem, "order-observer-poll was taken under both keys: plain by b", "spring by a", "key-format differs between nodes")
		// Once it was the other, and nobody is left who takes it so.
		past := `acquired_at - interval '1 hour'`
		if p.url[:6] == "sqlite" {
			past = `'2020-01-01 00:00:00.000000'`
		}
		p.exec(t, `UPDATE obs_lock SET acquired_at = `+past+` WHERE node = 'b'`)
		found := p.examine(t, 0)
		healthy(t, found, superuser, "nodes")
		says(t, found, "keys", doctor.Note, "The key-format was changed")
	})
}

// TestJavaNodesLockOtherRows covers a configuration that does not fit them.
func TestJavaNodesLockOtherRows(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix, held("0"))
	says(t, p.examine(t, 0), "keys", doctor.OK)

	p.want.Locks[0].KeyFormat = lockdb.KeyPlain
	says(t, p.examine(t, 0), "keys", doctor.Problem, "holds order-observer-poll under the key 57509ec6-", "key-format: plain", "Write scheduler.observer.lock.key-format: spring.")

	p.want.Locks[0].KeyFormat, p.want.Locks[0].Region = lockdb.KeySpring, "WMS"
	says(t, p.examine(t, 0), "keys", doctor.Problem, "in the region DEFAULT; this configuration says region: WMS")

	// pathFor may be overridden from Spring 7 on, so that keys are plain there.
	p.want.Locks[0].Region = "DEFAULT"
	p.exec(t, `UPDATE INT_LOCK SET LOCK_KEY = 'order-observer-poll'`)
	says(t, p.examine(t, 0), "keys", doctor.Problem, "Write scheduler.observer.lock.key-format: plain.")
}

// TestHolders covers what the rows say of the Java nodes themselves.
func TestHolders(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	says(t, p.examine(t, 0), "holders", doctor.OK, "no holder but nodes of observerd")
	p.exec(t, `INSERT INTO INT_LOCK VALUES ('`+orderKey+`', 'DEFAULT', 'dockerAPI', `+utc("0")+`)`)
	found := p.examine(t, 0)
	says(t, found, "holders", doctor.Note, "1 foreign client id held 1 lock", "Java nodes")
	says(t, found, "holders", doctor.Warning, `the client id of its holder is "dockerAPI"`, "re-entrant")

	mixed := postgres(t, springSix, `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP`, held("0"))
	says(t, mixed.examine(t, 0), "holders", doctor.Problem, "has no EXPIRED_AFTER", "Upgrade or stop the nodes of Spring Integration up to 6")
}

// TestTTLs covers what can be seen of TTLs that differ.
func TestTTLs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		take(t, p.observerd(t), "b", lockdb.KeySpring, 45*time.Second)
		says(t, p.examine(t, 0), "ttl", doctor.Warning, "was last taken by node b", "with a TTL of 45s; this configuration says 1m", "the TTL is in the reader")
	})
}

// TestTTLsOfJavaNodes do no harm on the table of Spring 7.
func TestTTLsOfJavaNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, row string
		severity          doctor.Severity
		parts             []string
	}{
		{"6", springSix, held("0"), doctor.Note, []string{"cannot be seen", "setTimeToLive(60000)", "one below 20s"}},
		{"7", springSeven, heldSeven("0", "60 seconds"), doctor.OK, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := postgres(t, c.script)
			p.migrate(t)
			found := p.watched(t, func() func() time.Duration { return p.work(t, c.row) }, takenOnce)
			says(t, found, "ttl", c.severity, c.parts...)
			if c.name == "7" {
				for _, f := range found {
					if f.Check == "ttl" && f.Severity != doctor.OK {
						t.Errorf("a TTL that is right: %s", f.Saw)
					}
				}
			}
		})
	}
	// Nobody is told of Java nodes who has none.
	p := postgres(t, springSix)
	p.want.Locks[0].KeyFormat = lockdb.KeyPlain
	for _, f := range p.examine(t, 0) {
		if f.Check == "ttl" && f.Severity != doctor.OK {
			t.Errorf("without Java nodes: %s", f.Saw)
		}
	}
}
