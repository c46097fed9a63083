package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/status"
)

// nodes checks which nodes are alive.
func nodes(x *input, f *findings) {
	alive, gone := x.alive()
	if len(gone) > 0 && !x.Server.Standby && x.Server.Settings["default_transaction_read_only"] != "on" { // Else they may live and not show it.
		f.add(Note, fmt.Sprintf("%s within the last minute: %s", status.Plural(len(gone), "node has died", "nodes have died"), strings.Join(gone, ", ")),
			"They count as neither alive nor at work. The others have taken their locks.", "Find out why, unless you know: the end of their logs, and the kernel's log of the host (out of memory).")
	}
	if len(alive) == 0 {
		f.add(Warning, "no node of observerd has written its heartbeat within the last minute", "None is alive, or the database refuses writes: nothing is polled and nothing delivered.",
			"Start one with 'observerd run'. If one runs, its log says why it cannot write: is the disk of the database full?")
		return
	}
	working := x.working()
	if len(working) == 0 {
		f.add(Warning, fmt.Sprintf("all %d nodes are switched off, or have no type", len(alive)), "Nothing is polled and nothing delivered by observerd.",
			"Set scheduler.observer.enabled: true on a node when it is meant to work.")
	}
	if versions := group(alive, func(m status.Member) string { return m.Version }); len(versions) > 1 {
		f.add(Warning, "nodes have different versions: "+groups(versions), "This is normal during an upgrade, and only then.", "Finish the upgrade.")
	}
	for _, m := range working {
		if m.Hidden {
			f.add(Warning, fmt.Sprintf("the other nodes cannot detect the death of node %s", m.Name), "Its locks would remain until their TTL ends, and its turns with them.",
				"Its log says why: a pooler in transaction mode, a file that it cannot lock, or a start a moment ago.")
		}
		if len(m.Unreachable) > 0 {
			f.add(Warning, fmt.Sprintf("node %s cannot reach a source of: %s", m.Name, strings.Join(m.Unreachable, ", ")), "Others take its turns of these types.", "See its log, and check the network.")
		}
	}
	f.fine("%s, %d of them at work", status.Plural(len(alive), "node is alive", "nodes are alive"), len(working))
}

// configuration compares what the nodes were started with.
func configuration(x *input, f *findings) {
	working := x.working()
	hashes := group(working, func(m status.Member) string { return m.ConfigHash })
	if len(hashes) > 1 {
		f.add(Warning, "nodes at work have different configurations: "+groups(hashes),
			"Nothing is polled twice, but what is polled, and how, depends on the node whose turn it is.", "Give all nodes the same file; only node, http, log, database.url and database.pool-size may differ.")
	}
	if _, ok := hashes[x.want.ConfigHash]; len(hashes) > 0 && !ok {
		f.add(Note, fmt.Sprintf("this configuration (%s) is not that of any node at work", x.want.ConfigHash), "What doctor compares with it may not hold for them.",
			"Run doctor with the configuration of the nodes. A node that is switched off has another hash by that alone.")
	}
	if len(working) > 0 {
		f.fine("all nodes at work have one configuration")
	}
}

// types checks that each observer type has nodes that poll it, and turns.
func types(x *input, f *findings) {
	working := x.working()
	by := map[string][]string{}
	for _, m := range working {
		for _, t := range m.Types {
			by[t] = append(by[t], m.Name)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(by)) {
		if len(by[t]) == 1 && len(working) > 1 {
			f.add(Warning, fmt.Sprintf("the type %s is known to node %s alone", t, by[t][0]), "If that node ends, the type is not polled.", "Give the others the same observers, unless it is meant so.")
		}
	}
	if len(working) > 0 {
		x.overdue(f, by)
		f.fine("each type of this configuration is polled in time")
	}
}

// overdue finds types that should have been polled.
func (x *input) overdue(f *findings, by map[string][]string) {
	last := fn.By(x.Turns, func(t status.Type) string { return t.Name })
	for _, l := range x.want.Locks {
		if l.Type == "" || !l.Enabled {
			continue
		}
		t, polled := last[l.Type]
		switch age, patience := x.At.Sub(t.TurnAt), max(status.Fresh*l.Interval, 2*l.TTL); {
		case len(by[l.Type]) == 0:
			f.add(Warning, "no node at work polls the type "+l.Type+", which this configuration has", "Its rows become no events.", "Is the configuration of the nodes older than this one?")
		case !polled:
			f.add(Note, "the type "+l.Type+" has never been polled", "", "Wait for its first turn.")
		case age > patience && !l.rests(x.At, patience):
			f.add(Problem, fmt.Sprintf("the last turn of the type %s is %s old, its interval is %s", l.Type, words(age), words(l.Interval)), "Its rows become no events.",
				"Check the lock: 'observerd status' shows its holder; a row of a foreign holder that is dated in the future keeps it until then. Otherwise the log of the nodes has the reason.")
		}
	}
}

// rests reports whether the type may have had no turn for so long because of the time of
// day.
func (l Lock) rests(now time.Time, patience time.Duration) bool {
	return l.Suspended != nil && (l.Suspended(now) || l.Suspended(now.Add(-patience)))
}

// paused tells which observers an operator has paused.
func paused(x *input, f *findings) {
	for _, o := range x.Paused {
		f.add(Note, fmt.Sprintf("the observer %s is paused%s", o.ID, o.Pause.Words(x.At, words)), "Its rows become no events meanwhile.",
			fmt.Sprintf("'observerd observers resume %s' ends the pause.", o.ID))
	}
	if len(x.Paused) == 0 {
		f.fine("no observer is paused")
	}
}

// poison tells which observers have rows of which no event can be made.
func poison(x *input, f *findings) {
	for _, p := range x.Poison {
		severity, why := Warning, "These rows do not become events."
		if p.Only {
			severity, why = Problem, "The observer has made no event at all."
		}
		f.add(severity, fmt.Sprintf("the observer %s has %s, mostly because %s", p.Observer, status.Plural(int(p.Rows), "poison row", "poison rows"), p.Reason), why,
			fmt.Sprintf("'observerd dead list --observer %s' shows them, and 'observerd validate' what to set otherwise.", p.Observer))
	}
	f.fine("no observer has poison rows")
}

// sinks checks that all nodes feed the same sinks, and that no offset lies beyond the
// end of its stream.
func sinks(x *input, f *findings) {
	working := x.working()
	count := map[string]int{}
	for _, m := range working {
		for _, s := range m.Sinks {
			count[s]++
		}
	}
	for _, s := range slices.Sorted(maps.Keys(count)) {
		if count[s] < len(working) {
			f.add(Warning, fmt.Sprintf("the sink %s is known to %d of %d nodes", s, count[s], len(working)), "Only these can feed it.", "Give all nodes the same sinks.")
		}
	}
	for _, s := range x.Beyond {
		f.add(Problem, fmt.Sprintf("the offset of the sink %s is %d in the stream %s, which ends at %d", s.Sink, s.Offset, s.Stream, s.Last),
			fmt.Sprintf("The next %d events of this stream will not reach the sink.", s.Offset-s.Last),
			"Somebody has changed rows of obs_sink_offset, obs_cursor or obs_event, or restored one without the others. Stop the nodes, and restore all tables from one moment.")
	}
	if len(working) > 0 {
		f.fine("all nodes at work have the same sinks")
	}
}

// alive returns the nodes that are not known to have died, and the names of those that
// are.
func (x *input) alive() (alive []status.Member, gone []string) {
	for _, m := range x.Members {
		if m.Gone {
			gone = append(gone, m.Name)
		} else {
			alive = append(alive, m)
		}
	}
	return alive, gone
}

// working returns the live nodes that poll something.
func (x *input) working() []status.Member {
	alive, _ := x.alive()
	return slices.DeleteFunc(alive, func(m status.Member) bool { return len(m.Types) == 0 })
}

// group sorts the names of nodes by a property.
func group(members []status.Member, of func(status.Member) string) map[string][]string {
	return fn.Group(members, func(m status.Member) (property, name string) { return of(m), m.Name })
}

func groups(all map[string][]string) string {
	one := func(property string) string {
		return fmt.Sprintf("%s (%s)", property, strings.Join(all[property], ", "))
	}
	return strings.Join(fn.Each(slices.Sorted(maps.Keys(all)), one), "; ")
}
