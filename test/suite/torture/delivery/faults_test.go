//go:build nightly

package delivery

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
)

// strike has a fault of a kind strike, and reports whether it has.
func (w *world) strike(kind string) bool {
	var n *node // The leader: another one has nothing to do with the sink.
	if !w.wait("a leader", 8*ttl, func() bool { n = w.leader(); return n != nil }) {
		return false
	}
	d := time.Duration(200+w.rng.IntN(3000)) * time.Millisecond
	switch kind {
	case "server killed":
		return w.restart(d)
	case "node killed":
		p := n.present()
		p.Kill()
		return p.ExitCode() == -1
	case "connections reset":
		before := n.way.Stats().Ended
		n.way.Reset()
		return n.way.Stats().Ended > before
	case "cut before it arrives":
		return w.once(n, func() netfault.Fault {
			n.way.Refuse(true)
			return netfault.Fault{}
		}, func() bool { n.way.Refuse(false); return true })
	case "cut before the answer":
		before := n.way.Stats().AnswersLost
		return w.once(n, func() netfault.Fault { return netfault.Fault{LoseAnswer: true} }, func() bool {
			return w.wait("an answer that is lost", 5*time.Second, func() bool { return n.way.Stats().AnswersLost > before })
		})
	case "arrives late":
		return w.once(n, func() netfault.Fault { return netfault.Fault{Late: d} }, func() bool { return true })
	case "two leaders":
		return w.twoLeaders(n)
	}
	panic("there is no fault " + kind)
}

var kinds = []string{"server killed", "node killed", "connections reset", "cut before it arrives", "cut before the answer", "arrives late", "two leaders"}

// restart kills the server, and starts it again.
func (w *world) restart(after time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience)
	defer cancel()
	if err := w.target.kill(ctx); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(after)
	if err := w.target.start(ctx); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// once does something to the next piece with events that the node sends, and then heals.
func (w *world) once(n *node, fault func() netfault.Fault, then func() bool) bool {
	met := make(chan struct{})
	var done atomic.Bool
	n.way.Inspect(func(piece []byte) netfault.Fault {
		if !w.target.carries(piece) || done.Swap(true) {
			return netfault.Fault{}
		}
		defer close(met)
		return fault()
	})
	defer n.way.Inspect(nil)
	select {
	case <-met:
		time.Sleep(100 * time.Millisecond)
		return then()
	case <-time.After(8 * time.Second):
		return false
	}
}

// leader is the node whose relay leads; nil for none.
func (w *world) leader() *node {
	for _, n := range w.nodes {
		if w.leads(n) {
			return n
		}
	}
	return nil
}

func (w *world) leads(n *node) bool {
	p := n.present()
	if p == nil || !p.Running() {
		return false
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	m, err := p.Metrics(ctx)
	return err == nil && m.Sum("observerd_relay_leader", `sink="`+sinkID+`"`) > 0
}

// twoLeaders holds a batch of the leader back, stops it, waits until the other one leads, and
// lets first the batch go on and then the former leader, which does not know yet.
func (w *world) twoLeaders(n *node) bool {
	other := w.nodes[0]
	if other == n {
		other = w.nodes[1]
	}
	p := n.present()
	terms := func() int { return other.present().Log.Count(`"msg":"Relay leads"`) } // It may be stopped, too.
	before := terms()
	release := make(chan struct{})
	return w.once(n, func() netfault.Fault { return netfault.Fault{Hold: release} }, func() bool {
		defer func() { _ = p.Signal(syscall.SIGCONT) }()
		err := p.Signal(syscall.SIGSTOP)
		led := err == nil && w.wait("the other leader", 4*ttl+10*time.Second, func() bool { return terms() > before })
		time.Sleep(time.Second) // It has claimed the sink, or is about to.
		close(release)
		time.Sleep(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
		return led
	})
}

// torture has faults strike for a time, and for longer where one of them has not struck yet.
func (w *world) torture(length time.Duration) {
	w.t.Helper()
	began := time.Now()
	for time.Since(began) < length || !w.allStruck() && time.Since(began) < 3*length {
		for _, i := range w.rng.Perm(len(kinds)) {
			if time.Since(began) > 3*length {
				break
			}
			time.Sleep(time.Duration(500+w.rng.IntN(2500)) * time.Millisecond)
			if w.strike(kinds[i]) {
				w.bit[kinds[i]]++
			}
		}
	}
}

func (w *world) struck() map[string]int {
	all := w.pointsStruck()
	for _, kind := range kinds {
		all[kind] = w.bit[kind]
	}
	return all
}

// pointsStruck is how often each failpoint has.
func (w *world) pointsStruck() map[string]int {
	all := make(map[string]int)
	for _, n := range w.nodes {
		n.mu.Lock()
		for _, point := range points {
			all[point] += n.points[point]
		}
		n.mu.Unlock()
	}
	return all
}

func (w *world) allStruck() bool {
	for _, n := range w.struck() {
		if n == 0 {
			return false
		}
	}
	return true
}
