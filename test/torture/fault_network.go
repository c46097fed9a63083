package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
)

// cut resets all connections of a node.
func cut(_ context.Context, c *cluster, f Planned) (bit bool, detail string) {
	return c.node(f.Node).faultGates(f.Where, (*netfault.Proxy).Reset)
}

// halfOpen ends the server's side of all connections of a node.
func halfOpen(_ context.Context, c *cluster, f Planned) (bit bool, detail string) {
	return c.node(f.Node).faultGates(f.Where, (*netfault.Proxy).HalfOpen)
}

// faultGates does something to the node's connections, and reports whether
// there were any.
func (n *node) faultGates(where string, fault func(*netfault.Proxy)) (bit bool, detail string) {
	before := n.bites(where)
	for _, g := range n.gates(where) {
		fault(g.Proxy)
	}
	return n.bites(where) > before, where
}

// bites counts what the faults of the node's ways have really done.
func (n *node) bites(where string) (sum int64) {
	for _, g := range n.gates(where) {
		s := g.Stats()
		sum += s.Ended + s.Halved + s.Swallowed + s.Stalled + s.Slowed
	}
	return sum
}

// impair changes the impairment on a node's ways for a while.
func (n *node) impair(ctx context.Context, f Planned, w netfault.Impairment) (bit bool, detail string) {
	before := n.bites(f.Where)
	for _, g := range n.gates(f.Where) {
		defer g.impair(w)()
	}
	sleep(ctx, f.For)
	return n.bites(f.Where) > before, f.Where
}

// blackHole swallows everything.
func blackHole(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	return c.node(f.Node).impair(ctx, f, netfault.BlackHole())
}

// oneWay swallows what goes to the server, or what comes from it.
func oneWay(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	w, way := netfault.Impairment{Up: netfault.Lost}, "requests"
	if f.Number%2 == 0 {
		w, way = netfault.Impairment{Down: netfault.Lost}, "answers"
	}
	bit, detail = c.node(f.Node).impair(ctx, f, w)
	return bit, detail + ", " + way
}

// stall keeps everything, or only requests, until the network is healed: then
// they arrive, whatever has become of their senders.
func stall(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	w, way := netfault.Impairment{Up: netfault.Stalled, Down: netfault.Stalled}, "both ways"
	if f.Number%2 == 0 {
		w, way = netfault.Impairment{Up: netfault.Stalled}, "requests"
	}
	bit, detail = c.node(f.Node).impair(ctx, f, w)
	return bit, detail + ", " + way
}

// slow adds latency and narrows the line.
func slow(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	w := netfault.Impairment{
		Latency:   time.Duration(5+f.Number%100) * time.Millisecond,
		Bandwidth: (20 + f.Number%300) << 10,
	}
	bit, detail = c.node(f.Node).impair(ctx, f, w)
	return bit, fmt.Sprintf("%s, %s, %d KiB/s", detail, w.Latency, w.Bandwidth>>10)
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
