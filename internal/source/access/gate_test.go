package access

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

func TestWrongPasswordStopsEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		first, second := gateOf(b, "a", "wrong"), gateOf(b, "b", "wrong")
		if err := v.logon(first); !isRefusal(err) {
			t.Fatal(err)
		}
		for _, g := range []*credentialGate{first, second, gateOf(b, "c", "wrong")} {
			err := v.logon(g)
			if !isRefusal(err) || !strings.Contains(err.Error(), "ORA-01017") || !strings.Contains(err.Error(), "node a") {
				t.Errorf("another logon: %v", err)
			}
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v holds the password", err)
			}
		}
		if v.failed != 1 {
			t.Errorf("%d failed logons, want 1", v.failed)
		}
		// The secret was changed on one node: it works, and the others are left
		// alone until they have it too.
		if err := v.logon(gateOf(b, "d", "right")); err != nil {
			t.Errorf("with the right password: %v", err)
		}
		time.Sleep(askEvery)
		if err := v.logon(second); !isRefusal(err) || v.failed != 1 {
			t.Errorf("with the old password: %v, %d failed logons", err, v.failed)
		}
		for _, row := range b.rows {
			if strings.Contains(fmt.Sprintf("%+v %s %s", row, row.Salt, row.Digest), "wrong") {
				t.Errorf("the row holds the password: %+v", row)
			}
		}
	})
}

// TestRefusedSecretIsTriedOnceUntilItIsResumed has two nodes ask for half a day.
func TestRefusedSecretIsTriedOnceUntilItIsResumed(t *testing.T) {
	for _, code := range []string{"ORA-01017", "28P01", "1045", "ORA-28000", "ORA-28001"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, v := newBook(), &vault{code: code}
				nodes := []*credentialGate{gateOf(b, "a", "secret"), gateOf(b, "b", "secret")}
				for range 12 * 60 * 2 {
					for _, g := range nodes {
						if err := v.logon(g); !isRefusal(err) {
							t.Fatal(err)
						}
					}
					time.Sleep(30 * time.Second)
				}
				if v.failed != 1 {
					t.Errorf("%d failed logons in twelve hours, want 1", v.failed)
				}
				v.code, b.rows = "", nil // As by resume.
				for _, g := range nodes {
					if err := v.logon(g); err != nil {
						t.Errorf("after that: %v", err)
					}
				}
				if b.writes != 1 {
					t.Errorf("%d writes, want that of the refusal", b.writes)
				}
			})
		})
	}
}

// TestTwoWrongPasswordsAreTriedOnceEach has two secrets on several nodes, both of
// them wrong, which ask in turn: neither refusal makes anybody forget the other,
// nor does a restart, nor a logon with the right secret.
func TestTwoWrongPasswordsAreTriedOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		start := func() []*credentialGate {
			return []*credentialGate{gateOf(b, "a", "wrong"), gateOf(b, "b", "typo"), gateOf(b, "c", "wrong"), gateOf(b, "d", "typo")}
		}
		turns := func(nodes []*credentialGate, n int, every time.Duration) {
			t.Helper()
			for range n {
				for _, g := range nodes {
					if err := v.logon(g); !isRefusal(err) {
						t.Fatalf("node %s: %v", g.options.Node, err)
					}
				}
				time.Sleep(every)
			}
		}
		nodes := start()
		turns(nodes, 60, time.Second)
		turns(start(), 60, time.Second)
		if v.failed != 2 {
			t.Errorf("%d failed logons of two secrets, want 2", v.failed)
		}
		if err := v.logon(gateOf(b, "e", "right")); err != nil {
			t.Errorf("with the right password: %v", err)
		}
		turns(append(nodes, start()...), 10, askEvery)
		if v.failed != 2 {
			t.Errorf("%d failed logons after the right one, want 2", v.failed)
		}
		turns(nodes, 12*60*2, 30*time.Second)
		if v.failed != 2 {
			t.Errorf("%d failed logons in twelve hours, want 2", v.failed)
		}
	})
}

// TestTwoRefusalsOfOneSecret is of nodes that were refused at one instant, and
// have chosen two salts.
func TestTwoRefusalsOfOneSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		_ = v.logon(gateOf(b, "a", "wrong"))
		first := b.rows
		b.rows = nil
		_ = v.logon(gateOf(b, "b", "wrong"))
		b.rows = append(b.rows, first...)
		_ = v.logon(gateOf(b, "c", "typo"))
		if len(b.rows) != 3 || v.failed != 3 {
			t.Fatalf("rows %+v, %d failed logons", b.rows, v.failed)
		}
		for _, secret := range []string{"wrong", "typo"} {
			if err := v.logon(gateOf(b, "d", secret)); !isRefusal(err) || v.failed != 3 {
				t.Errorf("%s: %v, %d failed logons", secret, err, v.failed)
			}
		}
	})
}

// TestManyLogonsOfOneProcess are one question and, as long as the password was
// not accepted, one logon.
func TestManyLogonsOfOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		for name, want := range map[string]int64{"wrong": 1, "right": 8} {
			g := gateOf(b, "a", name)
			g.id = name
			var tried, inside, most atomic.Int64
			var work sync.WaitGroup
			for range 8 {
				work.Go(func() {
					ended, err := g.Allow(t.Context())
					if err != nil {
						return
					}
					tried.Add(1)
					most.Store(max(most.Load(), inside.Add(1)))
					time.Sleep(askEvery / 10) // The logon takes its time.
					inside.Add(-1)
					if name == "right" {
						ended(nil)
						return
					}
					ended(&observer.Fault{Class: observer.ClassCredentials, Err: errors.New("denied")})
				})
			}
			work.Wait()
			if tried.Load() != want {
				t.Errorf("%s: %d logons, want %d", name, tried.Load(), want)
			}
			if name == "wrong" && most.Load() != 1 {
				t.Errorf("%d logons at a time", most.Load())
			}
		}
		if b.asked > 4 {
			t.Errorf("%d questions", b.asked)
		}
	})
}

// TestPasswordThatIsChangedCostsOneLogonOfEachNode is the morning after a
// password was changed: nodes that worked until then open their pools anew, and
// the database takes its time to refuse them.
func TestPasswordThatIsChangedCostsOneLogonOfEachNode(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { changePassword(t, takes) })
		})
	}
}

func changePassword(t *testing.T, takes time.Duration) {
	b := newBook()
	var tried atomic.Int64
	var work sync.WaitGroup
	for _, node := range []string{"a", "b", "c", "d"} {
		g := gateOf(b, node, "old")
		ended, err := g.Allow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended(nil)
		for range 8 {
			work.Go(func() {
				ended, err := g.Allow(t.Context())
				if err != nil {
					return
				}
				tried.Add(1)
				time.Sleep(takes)
				ended(&observer.Fault{Class: observer.ClassCredentials, Code: "28P01", Err: errors.New("denied")})
			})
		}
	}
	work.Wait()
	if tried.Load() != 4 {
		t.Errorf("%d logons of 4 nodes", tried.Load())
	}
}

func TestGateWithoutItsDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		down := func(err error) { b.set(func(b *book) { b.down = err }) }
		g, other := gateOf(b, "a", "right"), gateOf(b, "b", "right")
		down(errors.New("down"))
		if err := v.logon(g); err == nil || isRefusal(err) || observer.ClassOf(err) != observer.ClassUnknown {
			t.Errorf("an account that nobody knows: %v", err)
		}
		lenient := gateOf(b, "c", "right")
		lenient.options.Lenient = true
		if err := v.logon(lenient); err != nil {
			t.Errorf("a person's: %v", err)
		}
		// A refusal that cannot be written holds for this process, and is
		// written as soon as it can be.
		down(nil)
		if err := v.logon(g); err != nil {
			t.Fatal(err)
		}
		down(errors.New("down"))
		v.password = "changed"
		for range 2 {
			if err := v.logon(g); !isRefusal(err) || v.failed != 1 {
				t.Errorf("%v, %d failed logons", err, v.failed)
			}
		}
		down(nil)
		if err := v.logon(g); !isRefusal(err) || v.failed != 1 || len(b.rows) != 1 {
			t.Errorf("with the database: %v, %d failed logons, rows %v", err, v.failed, b.rows)
		}
		if err := v.logon(other); !isRefusal(err) || v.failed != 1 {
			t.Errorf("another node: %v, %d failed logons", err, v.failed)
		}
	})
}

// TestGateThatOnlyReads has a command that notes nothing, and nodes.
func TestGateThatOnlyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		reader := gateOf(b, "a", "wrong")
		reader.options.ReadOnly = true
		for range 2 {
			if err := v.logon(reader); !isRefusal(err) || v.failed != 1 || len(b.rows) != 0 {
				t.Errorf("%v, %d failed logons, rows %v", err, v.failed, b.rows)
			}
		}
		if err := v.logon(gateOf(b, "b", "wrong")); !isRefusal(err) || v.failed != 2 || len(b.rows) != 1 {
			t.Errorf("a node: %v, %d failed logons, rows %v", err, v.failed, b.rows)
		}
		late := gateOf(b, "c", "wrong")
		late.options.ReadOnly = true
		if err := v.logon(late); !isRefusal(err) || v.failed != 2 {
			t.Errorf("what nodes know: %v, %d failed logons", err, v.failed)
		}
	})
}

// TestRefusalIsNotWrittenAfterTheResume has one that could not be written at once,
// and an account that is fixed then.
func TestRefusalIsNotWrittenAfterTheResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		g := gateOf(b, "a", "right")
		if err := v.logon(g); err != nil {
			t.Fatal(err)
		}
		b.set(func(b *book) { b.down = errors.New("down") })
		v.password = "changed"
		if err := v.logon(g); !isRefusal(err) || len(b.rows) != 0 {
			t.Fatalf("%v, rows %v", err, b.rows)
		}
		b.set(func(b *book) { b.down = nil })
		if err := g.Refusal(t.Context()); !isRefusal(err) || len(b.rows) != 1 {
			t.Errorf("%v, rows %v", err, b.rows)
		}
		v.password, b.rows = "right", nil // As by resume.
		time.Sleep(askEvery)
		if err := v.logon(g); err != nil || len(b.rows) != 0 {
			t.Errorf("after that: %v, rows %v", err, b.rows)
		}
	})
}

// TestRefusalIsWrittenToASlowDatabase has one that takes its time for each answer.
func TestRefusalIsWrittenToASlowDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		b.takes = storeTimeout - time.Second
		if err := v.logon(gateOf(b, "a", "wrong")); !isRefusal(err) || len(b.rows) != 1 {
			t.Errorf("%v, rows %v", err, b.rows)
		}
	})
}
