package access

import (
	"context"
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

func TestWrongPasswordIsProbedThreeTimes(t *testing.T) {
	for code, want := range map[string]int{"ORA-01017": 1 + MaxProbes, "28P01": 1 + MaxProbes, "1045": 1 + MaxProbes, "ORA-28000": 25, "ORA-28001": 25} {
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
				// One in half an hour and the node's own delay, so 24 at most in
				// twelve hours, beside the first.
				if low := want - want/12; v.failed > want || v.failed < low {
					t.Errorf("%d failed logons in twelve hours, want %d to %d", v.failed, low, want)
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
						t.Fatalf("node %s: %v", g.node, err)
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
		if want := 2 * (1 + MaxProbes); v.failed != want {
			t.Errorf("%d failed logons in twelve hours, want %d", v.failed, want)
		}
		for _, row := range b.rows {
			if !GivenUp(row, wrongPassword) {
				t.Errorf("row %+v", row)
			}
		}
	})
}

// TestSecretThatIsAcceptedMakesNoOtherRight has the password over there become one
// of two that were wrong.
func TestSecretThatIsAcceptedMakesNoOtherRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		wrong, typo := gateOf(b, "a", "wrong"), gateOf(b, "b", "typo")
		_, _ = v.logon(wrong), v.logon(typo)
		v.password = "typo"
		time.Sleep(31*time.Minute + probeSpread)
		if err := v.logon(typo); err != nil {
			t.Fatalf("the probe: %v", err)
		}
		if err := v.logon(wrong); !isRefusal(err) || v.failed != 3 {
			t.Errorf("the other's probe: %v, %d failed logons", err, v.failed)
		}
		for range 10 {
			time.Sleep(askEvery)
			if err := v.logon(typo); err != nil {
				t.Error(err)
			}
			if err := v.logon(wrong); !isRefusal(err) || v.failed != 3 {
				t.Fatalf("after it: %v, %d failed logons", err, v.failed)
			}
		}
		if len(b.rows) != 1 || b.rows[0].Node != "a" || b.rows[0].Failures != 2 {
			t.Errorf("rows %+v", b.rows)
		}
		// Nobody has that secret any more, most likely.
		time.Sleep(otherSecretFor)
		if err := v.logon(typo); err != nil || len(b.rows) != 0 {
			t.Errorf("a day later: %v, rows %+v", err, b.rows)
		}
	})
}

// TestTwoRefusalsOfOneSecretCountAsOne is of nodes that were refused first at one
// instant, and have chosen two salts.
func TestTwoRefusalsOfOneSecretCountAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		_ = v.logon(gateOf(b, "a", "wrong"))
		first := b.rows
		b.rows = nil
		time.Sleep(time.Minute)
		_ = v.logon(gateOf(b, "b", "wrong"))
		b.rows = append(b.rows, first...)
		g := gateOf(b, "c", "wrong")
		g.delay = 0
		time.Sleep(29*time.Minute + askEvery)
		if err := v.logon(g); !isRefusal(err) || v.failed != 2 {
			t.Errorf("before the later pause is over: %v, %d failed logons", err, v.failed)
		}
		time.Sleep(time.Minute)
		if err := v.logon(g); !isRefusal(err) || v.failed != 3 || b.rows[0].Failures+b.rows[1].Failures != 3 {
			t.Errorf("the probe: %v, %d failed logons, rows %+v", err, v.failed, b.rows)
		}
		v.password = "wrong"
		time.Sleep(31 * time.Minute)
		if err := v.logon(g); err != nil || len(b.rows) != 0 {
			t.Errorf("the second probe: %v, rows %+v", err, b.rows)
		}
	})
}

func TestAccountThatIsFixedIsAcceptedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{code: "ORA-28000"}
		a, other := gateOf(b, "a", "secret"), gateOf(b, "b", "secret")
		_ = v.logon(a)
		v.code = ""
		if err := v.logon(other); !isRefusal(err) {
			t.Fatalf("before the next probe: %v", err)
		}
		time.Sleep(31*time.Minute + probeSpread)
		if err := v.logon(a); err != nil || len(b.rows) != 0 {
			t.Errorf("the probe: %v; rows %v", err, b.rows)
		}
		time.Sleep(askEvery)
		writes := b.writes
		for range 10 {
			if err := errors.Join(v.logon(other), v.logon(a)); err != nil {
				t.Error(err)
			}
		}
		if b.writes != writes {
			t.Errorf("%d writes of logons that nobody had refused", b.writes-writes)
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
					if g.Allow(t.Context()) != nil {
						return
					}
					tried.Add(1)
					most.Store(max(most.Load(), inside.Add(1)))
					time.Sleep(askEvery / 10) // The logon takes its time.
					inside.Add(-1)
					if name == "right" {
						g.Accepted(t.Context())
						return
					}
					g.Refused(t.Context(), &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("denied")})
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
	called := func(t *testing.T) context.Context { ctx, _ := asCall(t.Context()); return ctx }
	pooled := func(t *testing.T) context.Context { return t.Context() }
	for name, ctxOf := range map[string]func(*testing.T) context.Context{"calls": called, "pools": pooled} {
		for _, takes := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
			t.Run(fmt.Sprintf("%s, %v", name, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { changePassword(t, takes, ctxOf) })
			})
		}
	}
}

func changePassword(t *testing.T, takes time.Duration, ctxOf func(*testing.T) context.Context) {
	b := newBook()
	var tried atomic.Int64
	var work sync.WaitGroup
	for _, node := range []string{"a", "b", "c", "d"} {
		g := gateOf(b, node, "old")
		if err := g.Allow(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Accepted(t.Context())
		for range 8 {
			work.Go(func() {
				ctx := ctxOf(t)
				if g.Allow(ctx) != nil {
					return
				}
				tried.Add(1)
				time.Sleep(takes)
				g.Refused(ctx, &observer.Fault{Class: observer.ClassCredentials, Code: "28P01", Err: errors.New("denied")})
			})
		}
	}
	work.Wait()
	if tried.Load() != 4 {
		t.Errorf("%d logons of 4 nodes", tried.Load())
	}
	for _, row := range b.rows {
		if row.Failures != 1 {
			t.Errorf("they count as %d refusals, so the account is soon tried no more", row.Failures)
		}
	}
}

func TestGateWithoutItsDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, v := newBook(), &vault{password: "right"}
		down := func(err error) { b.set(func(b *book) { b.down = err }) }
		proven, unproven := gateOf(b, "a", "right"), gateOf(b, "b", "right")
		if err := v.logon(proven); err != nil {
			t.Fatal(err)
		}
		down(errors.New("down"))
		time.Sleep(askEvery)
		if err := v.logon(proven); err != nil {
			t.Errorf("an account that was accepted: %v", err)
		}
		if err := v.logon(unproven); err == nil || isRefusal(err) || observer.ClassOf(err) != observer.ClassUnknown {
			t.Errorf("an account that nobody knows: %v", err)
		}
		lenient := gateOf(b, "c", "right")
		lenient.lenient = true
		if err := v.logon(lenient); err != nil {
			t.Errorf("a person's: %v", err)
		}
		// A refusal that cannot be written holds for this process, and is
		// written as soon as it can be.
		v.password = "changed"
		if err := v.logon(proven); !isRefusal(err) {
			t.Fatal(err)
		}
		if err := v.logon(proven); !isRefusal(err) || v.failed != 1 {
			t.Errorf("again: %v, %d failed logons", err, v.failed)
		}
		down(nil)
		if err := v.logon(proven); !isRefusal(err) || v.failed != 1 || len(b.rows) != 1 {
			t.Errorf("with the database: %v, %d failed logons, rows %v", err, v.failed, b.rows)
		}
		if err := v.logon(unproven); !isRefusal(err) || v.failed != 1 {
			t.Errorf("another node: %v, %d failed logons", err, v.failed)
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
		if refused, err := g.Standing(t.Context()); !refused || err != nil || len(b.rows) != 1 {
			t.Errorf("refused %v, %v, rows %v", refused, err, b.rows)
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
