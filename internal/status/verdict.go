package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// Level is how well a cluster does.
type Level string

// The levels: at LevelFailing events are late or missing, at LevelDegraded they may soon be.
const (
	LevelOK       Level = "ok"
	LevelDegraded Level = "degraded"
	LevelFailing  Level = "failing"
)

// Verdict is what a person has to know first.
type Verdict struct {
	Level Level `json:"level"`
	// Attention is what needs attention, the worst first.
	Attention []Attention `json:"attention"`
}

// Attention is one thing that a person may have to act on.
type Attention struct {
	Level Level `json:"level"`
	// What names it, such as "observer orders".
	What string `json:"what"`
	// Since is when it began, as far as that is known.
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why"`
	// Command is what to type next, Runbook the name of a page of docs/runbooks.
	Command string `json:"command,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

const (
	// An observer, or a sink, that lags by as much needs attention, as for the alerts.
	observerBehind = 15 * time.Minute
	sinkBehind     = 10 * time.Minute
)

// Judge returns the verdict on a report.
func (r Report) Judge() Verdict {
	v := Verdict{Level: LevelOK, Attention: slices.Concat(r.nodesNeed(), r.typesNeed(), r.observersNeed(), r.sinksNeed(), r.othersNeed())}
	slices.SortStableFunc(v.Attention, func(a, b Attention) int { return cmp.Compare(b.Level.rank(), a.Level.rank()) })
	if len(v.Attention) > 0 {
		v.Level = v.Attention[0].Level
	}
	return v
}

func (l Level) rank() int { return slices.Index([]Level{LevelOK, LevelDegraded, LevelFailing}, l) }

// Headline is the verdict in one line.
func (v Verdict) Headline() string {
	if len(v.Attention) == 0 {
		return "ok"
	}
	return string(v.Level) + ": " + Plural(len(v.Attention), "thing needs attention", "things need attention")
}

// Plural words how many of something there are.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (r Report) nodesNeed() (all []Attention) {
	versions, hashes := make(map[string]bool), make(map[string]bool)
	var last, begun time.Time // when a node was last seen to work, and when the last of those alive started
	for _, t := range r.Types {
		last = fn.Later(last, t.TurnAt)
	}
	died := "it died"
	if slices.ContainsFunc(r.Nodes, func(n Node) bool { return !n.Gone }) {
		died += "; the others have taken over"
	}
	for _, n := range r.Nodes {
		last = fn.Later(last, n.SeenAt)
		if n.Gone {
			all = append(all, Attention{Level: LevelDegraded, What: "node " + n.Name, Since: n.SeenAt, Why: died,
				Command: "systemctl status observerd", Runbook: "ObserverdSingleNodeAcquiring"})
			continue
		}
		versions[n.Version], hashes[n.ConfigHash] = true, true
		begun = fn.Later(begun, n.StartedAt)
		if len(n.Unreachable) > 0 {
			all = append(all, Attention{Level: LevelDegraded, What: "node " + n.Name, Why: "it cannot reach " + strings.Join(n.Unreachable, ", "),
				Command: "observerd doctor", Runbook: "ObserverdTypeNotSucceeding"})
		}
		if len(n.Outdated) > 0 {
			all = append(all, Attention{Level: LevelDegraded, What: "node " + n.Name, Why: "it does not poll " + strings.Join(n.Outdated, ", ") +
				", which the others define in another way", Command: "observerd doctor", Runbook: "ObserverdDefinitionsDiffer"})
		}
	}
	switch {
	case len(versions) == 0:
		all = append(all, Attention{Level: LevelFailing, What: "cluster", Since: last, Why: "no node has written its heartbeat: none is alive, or the database refuses writes (is its disk full?); nothing is polled or delivered",
			Command: "systemctl status observerd", Runbook: "ObserverdNoLockAcquired"})
	case len(versions) > 1:
		all = append(all, Attention{Level: LevelDegraded, What: "cluster", Since: begun, Why: "its nodes have different versions", Command: "observerd doctor", Runbook: "ObserverdVersionsDiffer"})
	case len(hashes) > 1:
		all = append(all, Attention{Level: LevelDegraded, What: "cluster", Since: begun, Why: "its nodes have different configurations", Command: "observerd doctor", Runbook: "ObserverdDefinitionsDiffer"})
	}
	return all
}

func (r Report) observersNeed() (all []Attention) {
	for _, o := range r.Observers {
		if o.State == StateRemoved || o.State == StateDisabled || o.State == StatePaused {
			continue
		}
		a := Attention{What: "observer " + o.ID}
		switch {
		case o.State == StateUnpolled && r.alive(): // Without any node the cluster says so.
			a.Level, a.Since, a.Why, a.Runbook = LevelFailing, o.TurnAt, "no live node polls it: the nodes have another configuration", "ObserverdTypeNotPolled"
			a.Command = "observerd reload"
		case o.LastError != "":
			a.Level, a.Since, a.Why, a.Runbook = LevelFailing, o.LastOKAt, o.LastError, "ObserverdTypeNotSucceeding"
			a.Command = "observerd observers show " + o.ID
			if o.Refusal != "" && strings.Contains(o.LastError, o.Refusal) {
				a.Command = "observerd observers accept " + o.ID
			}
		case o.Refusal != "": // Of a sweep: that of a poll is its error.
			a.Level, a.Why, a.Runbook = LevelDegraded, "it has refused, until an operator accepts it: "+o.Refusal, "ObserverdTypeNotSucceeding"
			a.Command = "observerd observers accept " + o.ID
		case o.onlyPoison():
			a.Level, a.Since, a.Why, a.Runbook = LevelFailing, o.DeadSince, "no row that it reads can become an event: all are poison", "ObserverdOnlyPoison"
			a.Command = "observerd dead list --observer " + o.ID
		case o.Dead > 0:
			a.Level, a.Since, a.Why, a.Runbook = LevelDegraded, o.DeadSince, Plural(int(o.Dead), "row", "rows")+" could not become an event", "ObserverdDeadEvents"
			a.Command = "observerd dead list --observer " + o.ID
		case o.Lag >= observerBehind:
			a.Level, a.Why, a.Runbook = LevelDegraded, "its polls leave rows unread", "ObserverdObserverBehind"
			a.Since, a.Command = r.At.Add(-o.Lag), "observerd observers show "+o.ID
		default:
			continue
		}
		all = append(all, a)
	}
	return all
}

// typesNeed names one of the types for all: one cause often stops them together.
func (r Report) typesNeed() []Attention {
	if len(r.Overdue) == 0 {
		return nil
	}
	first := slices.MinFunc(r.Overdue, func(a, b Overdue) int { return a.Since.Compare(b.Since) })
	why := "its turn is due, and no node takes it: the nodes cannot take its lock, or do not go on"
	if others := len(r.Overdue) - 1; others > 0 {
		why = fmt.Sprintf("%s; so it is with %s", why, Plural(others, "other type", "other types"))
	}
	return []Attention{{Level: LevelFailing, What: "type " + first.Type, Since: first.Since, Why: why, Command: "observerd doctor", Runbook: "ObserverdTypeNotPolled"}}
}

// alive reports whether any node is.
func (r Report) alive() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { return !n.Gone })
}

// Polls reports whether the node is alive and polls the observer of a type.
func (n Node) Polls(typ, observer string) bool {
	return !n.Gone && slices.Contains(n.Types, typ) && !slices.Contains(n.Outdated, observer)
}

// overstayed counts the locks that are held for longer than their policies allow. It returns
// the one that should have ended first.
func (r Report) overstayed() (n int, first Lock) {
	for _, l := range r.Locks {
		ends := l.AcquiredAt.Add(l.MaxHold)
		if l.MaxHold == 0 || l.AcquiredAt.IsZero() || !r.At.After(ends) {
			continue
		}
		if n++; n == 1 || ends.Before(first.AcquiredAt.Add(first.MaxHold)) {
			first = l
		}
	}
	return n, first
}

func inAll(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d locks in all)", n)
}

// onlyPoison reports whether the last polls that met rows have made events of none.
func (o Observer) onlyPoison() bool {
	return o.Dead > 0 && (o.Live == 0 && o.Events == 0 || o.Recent.Poison > 0 && o.Recent.Poison == o.Recent.Rows)
}

func (r Report) sinksNeed() (all []Attention) {
	at := make(map[string]int)
	for _, s := range r.Sinks {
		if s.Pause != nil {
			continue
		}
		a := Attention{What: "sink " + s.Sink, Command: "observerd sinks list", Runbook: "ObserverdSinkLag"}
		switch {
		case s.LastError != "":
			a.Level, a.Since, a.Why = LevelFailing, s.FailedAt, s.LastError
		case s.Lag >= sinkBehind:
			a.Level, a.Since, a.Why = LevelDegraded, r.At.Add(-s.Lag), "events wait for it"
		default:
			continue
		}
		if n, known := at[s.Sink]; !known {
			at[s.Sink] = len(all)
			all = append(all, a)
		} else if all[n].Level == a.Level && a.Since.Before(all[n].Since) {
			all[n].Since = a.Since
		}
	}
	return all
}

func (r Report) othersNeed() (all []Attention) {
	for _, p := range r.Parked {
		all = append(all, Attention{Level: LevelDegraded, What: "sink " + p.Sink, Since: p.Since, Why: fmt.Sprintf("%d events are parked: it has refused them, or an earlier one of their key", p.Events),
			Command: "observerd dead list --sink " + p.Sink, Runbook: "ObserverdSinkParked"})
	}
	for _, a := range r.Accounts {
		all = append(all, Attention{Level: LevelFailing, What: "account " + a.ID, Since: a.Since, Why: "the source has refused it: " + a.Reason,
			Command: "observerd observers resume --all", Runbook: "ObserverdTypeNotSucceeding"})
	}
	if n, first := r.overstayed(); n > 0 {
		all = append(all, Attention{
			Level: LevelDegraded, What: "lock " + cmp.Or(first.Name, first.Key), Since: first.AcquiredAt.Add(first.MaxHold),
			Why:     fmt.Sprintf("it is held for longer than the max-hold of its policy, %s%s", first.MaxHold, inAll(n)),
			Command: "observerd locks ls", Runbook: "ObserverdGeneralLockHeldTooLong",
		})
	}
	if len(r.WentBack) > 0 {
		b := r.WentBack[0]
		all = append(all, Attention{Level: LevelDegraded, What: "event log", Since: b.At, Why: "it went back to an earlier state: " + b.Detail,
			Command: "observerd doctor", Runbook: "ObserverdLogWentBack"})
	}
	return all
}
