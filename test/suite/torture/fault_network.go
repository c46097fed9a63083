package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
)

// ofConnections is a fault that strikes the connections of a node at once. It bites
// when there were any.
func ofConnections(strike func(*netfault.Proxy)) inject {
	return func(_ context.Context, c *cluster, f Planned) (bit bool, detail string) {
		n := c.node(f.Node)
		before := n.bites(f.Where)
		for _, g := range n.gates(f.Where) {
			strike(g.Proxy)
		}
		return n.bites(f.Where) > before, f.Where
	}
}

// bites counts what the faults of the node's ways have really done.
func (n *node) bites(where string) (sum int64) {
	for _, g := range n.gates(where) {
		s := g.Stats()
		sum += s.Ended + s.Halved + s.Swallowed + s.Stalled + s.Slowed
	}
	return sum
}

// ofWays is a fault that impairs the ways of a node for a while. The number of the
// fault varies it.
func ofWays(impairment func(number int) (w netfault.Impairment, detail string)) inject {
	return func(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
		n := c.node(f.Node)
		before := n.bites(f.Where)
		w, detail := impairment(f.Number)
		for _, g := range n.gates(f.Where) {
			defer g.impair(w)()
		}
		sleep(ctx, f.For)
		return n.bites(f.Where) > before, f.Where + detail
	}
}

// refuse ends the connections of a program and refuses new ones for a while. The server sees
// its sessions end, as after a failover, though it lives.
func refuse(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	n := c.node(f.Node)
	before := n.bites(f.Where)
	for _, g := range n.gates(f.Where) {
		g.Refuse(true)
		defer g.Refuse(false)
	}
	sleep(ctx, f.For)
	return n.bites(f.Where) > before, f.Where
}

// blackHole swallows everything.
func blackHole(int) (w netfault.Impairment, detail string) { return netfault.BlackHole(), "" }

// oneWay swallows what goes to the server, or what comes from it.
func oneWay(number int) (w netfault.Impairment, detail string) {
	if number%2 == 0 {
		return netfault.Impairment{Down: netfault.Lost}, ", answers"
	}
	return netfault.Impairment{Up: netfault.Lost}, ", requests"
}

// stall keeps everything, or only requests, until the network is healed: then
// they arrive, whatever has become of their senders.
func stall(number int) (w netfault.Impairment, detail string) {
	if number%2 == 0 {
		return netfault.Impairment{Up: netfault.Stalled}, ", requests"
	}
	return netfault.Impairment{Up: netfault.Stalled, Down: netfault.Stalled}, ", both ways"
}

// slow adds latency and narrows the line.
func slow(number int) (w netfault.Impairment, detail string) {
	w.Latency, w.Bandwidth = time.Duration(5+number%100)*time.Millisecond, (20+number%300)<<10
	return w, fmt.Sprintf(", %s, %d KiB/s", w.Latency, w.Bandwidth>>10)
}

// loseAnswer lets a commit happen and loses its answer.
func loseAnswer(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	n := c.node(f.Node)
	before := n.coordination.Stats().AnswersLost
	bit, detail = n.inCommit(ctx, f, netfault.Fault{LoseAnswer: true})
	// The answer comes a moment after the request.
	for end := time.Now().Add(2 * time.Second); bit && time.Now().Before(end) && n.coordination.Stats().AnswersLost == before; {
		if !sleep(ctx, 20*time.Millisecond) {
			break
		}
	}
	return bit && n.coordination.Stats().AnswersLost > before, detail
}

// orphan lets a commit arrive when its client is gone.
func orphan(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	least, most := aroundTTL(c.options.TTL)
	late := least/4 + (most-least/4)*time.Duration(f.Number)/1000
	bit, detail = c.node(f.Node).inCommit(ctx, f, netfault.Fault{Late: late})
	if bit {
		sleep(ctx, late)
	}
	return bit, fmt.Sprintf("%s, %s late", detail, late.Round(time.Millisecond))
}

// inCommit waits for a commit of the node and injects the fault into it. Some
// of these faults take any transaction's end.
func (n *node) inCommit(ctx context.Context, f Planned, fault netfault.Fault) (bit bool, detail string) {
	matches, detail := IsCommit, "the commit of a chunk"
	if f.Number%4 == 0 {
		matches, detail = isAnyCommit, "any commit"
	}
	caught, letGo, ok := n.coordination.catch(matches, fault)
	if !ok {
		return false, "another fault waits for a commit"
	}
	defer letGo()
	if !received(ctx, caught, f.For) {
		return false, "there was no commit"
	}
	return true, detail
}
