package torture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/test/kit/netfault"
)

// steps are the named steps of a node at which it can be killed or stopped.
var steps = failpoint.Names()

// kind is a kind of fault.
type kind struct {
	name string
	// weight is how often it is dealt, against the others.
	weight int
	// everybody says that it strikes no single node.
	everybody bool
	// where are the places that it may strike.
	where []string
	// server says that it strikes the coordination server, or the way to it.
	server bool
	// program says that it strikes a program that holds general locks, and no node.
	program bool
	// lasts bounds how long it lasts.
	lasts func(ttl time.Duration) (least, most time.Duration)
	// inject does it, and undoes it when its time is over. It reports whether
	// it bit, and what it did; it returns early when ctx ends.
	inject inject
}

// The places of faults.
const (
	atCoordination = "coordination"
	atSource       = "source"
	atBoth         = "both"
)

var (
	places         = []string{atCoordination, atCoordination, atSource, atBoth}
	toCoordination = []string{atCoordination}
	streams        = []string{"orders", "tasks", "stock"}
)

// aroundTTL are times of which some outlast a lease and some do not.
func aroundTTL(ttl time.Duration) (least, most time.Duration) { return ttl / 6, ttl * 7 / 4 }

// beyondTTL outlasts each lease.
func beyondTTL(ttl time.Duration) (least, most time.Duration) {
	return ttl + time.Second, ttl + 4*time.Second
}

func moment(least, most time.Duration) func(time.Duration) (time.Duration, time.Duration) {
	return func(time.Duration) (time.Duration, time.Duration) { return least, most }
}

// kinds are all faults that a schedule deals. Those at named steps come with
// the starts of nodes instead: see [drawStart].
func kinds() []kind {
	atOnce := moment(0, 0)
	short := moment(500*time.Millisecond, 4*time.Second)
	return []kind{
		{name: "kill", weight: 10, lasts: atOnce, inject: ofProcess(kill)},
		{name: "terminate", weight: 4, lasts: atOnce, inject: ofProcess(terminate)},
		{name: "stop", weight: 8, lasts: beyondTTL, inject: ofProcess(stop)},
		{name: "stop-in-commit", weight: 6, server: true, lasts: beyondTTL, inject: ofProcess(stopInCommit)},
		{name: "clock", weight: 4, lasts: moment(6*time.Second, 15*time.Second), inject: ofProcess(clock)},
		{name: "full-disk", weight: 4, everybody: true, lasts: short, inject: fullDisk},
		{name: "rolling-restart", weight: 2, everybody: true, lasts: atOnce, inject: rollingRestart},
		{name: "other-columns", weight: 3, where: streams, lasts: beyondTTL, inject: ofProcess(redefine)},
		{name: "cut", weight: 6, where: places, lasts: atOnce, inject: ofConnections((*netfault.Proxy).Reset)},
		{name: "black-hole", weight: 6, where: places, lasts: aroundTTL, inject: ofWays(blackHole)},
		{name: "one-way", weight: 4, where: places, lasts: aroundTTL, inject: ofWays(oneWay)},
		{name: "stall", weight: 6, where: places, lasts: aroundTTL, inject: ofWays(stall)},
		{name: "half-open", weight: 5, where: places, lasts: atOnce, inject: ofConnections((*netfault.Proxy).HalfOpen)},
		{name: "slow", weight: 5, where: places, lasts: moment(2*time.Second, 10*time.Second), inject: ofWays(slow)},
		{name: "lost-answer", weight: 8, server: true, lasts: moment(8*time.Second, 8*time.Second), inject: loseAnswer},
		{name: "orphan", weight: 8, server: true, lasts: moment(8*time.Second, 8*time.Second), inject: orphan},
		{name: "coordination-restart", weight: 2, server: true, everybody: true, lasts: moment(0, 2*time.Second), inject: restartServer(atCoordination, fast)},
		{name: "coordination-crash", weight: 2, server: true, everybody: true, lasts: moment(0, 2*time.Second), inject: restartServer(atCoordination, crash)},
		{name: "source-restart", weight: 2, everybody: true, lasts: moment(0, 2*time.Second), inject: restartServer(atSource, fast)},
		{name: "source-crash", weight: 2, everybody: true, lasts: moment(0, 2*time.Second), inject: restartServer(atSource, crash)},
		{name: "session-limit", weight: 4, server: true, everybody: true, lasts: moment(time.Second, 4*time.Second), inject: limitSessions},
		{name: "empty-table", weight: 2, everybody: true, lasts: moment(20*time.Second, 20*time.Second), inject: emptyTable},
		{name: "pause", weight: 3, everybody: true, where: streams, lasts: moment(time.Second, 4*time.Second), inject: pause},
		{name: "reset", weight: 3, everybody: true, where: streams, lasts: atOnce, inject: reset()},
		{name: "forget", weight: 1, everybody: true, where: streams, lasts: atOnce, inject: reset("--forget")},
		{name: "kill-program", weight: 3, program: true, lasts: atOnce, inject: ofProcess(killProgram)},
		{name: "stop-program", weight: 3, program: true, lasts: beyondTTL, inject: ofProcess(stop)},
		{name: "cut-program", weight: 1, server: true, program: true, where: toCoordination, lasts: atOnce, inject: ofConnections((*netfault.Proxy).Reset)},
		{name: "black-hole-program", weight: 2, server: true, program: true, where: toCoordination, lasts: aroundTTL, inject: ofWays(blackHole)},
		{name: "one-way-program", weight: 2, server: true, program: true, where: toCoordination, lasts: beyondTTL, inject: ofWays(oneWay)},
		{name: "refuse-program", weight: 2, server: true, program: true, where: toCoordination, lasts: aroundTTL, inject: refuse},
	}
}

// The faults at named steps, as a history calls them.
const (
	killAtStep = "kill-at-step"
	stopAtStep = "stop-at-step"
)

var stepFaults = []string{killAtStep, stopAtStep}

// chosen are the kinds with these names, without those at named steps; nil is
// all of them. Those that need a coordination server are left out without one.
func chosen(names []string, coordination string) ([]kind, error) {
	all := kinds()
	if coordination == SQLite {
		all = slices.DeleteFunc(all, func(k kind) bool { return k.server })
	}
	if names == nil {
		return all, nil
	}
	var some []kind
	for _, name := range names {
		k, ok := byName(all, name)
		switch {
		case ok:
			some = append(some, k)
		case name != killAtStep && name != stopAtStep:
			return nil, fmt.Errorf("there is no fault %q with %s, only %s", name, coordination, strings.Join(append(namesOf(all), stepFaults...), ", "))
		}
	}
	return some, nil
}

func byName(all []kind, name string) (kind, bool) {
	for _, k := range all {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// Kinds are the names of all faults, those at named steps last.
func Kinds() []string { return append(namesOf(kinds()), stepFaults...) }

func namesOf(kinds []kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}
