package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/status"
)

// What a page shows at most, so that it stays below 100 KiB however large the cluster is.
const (
	mostRows      = 200
	manyObservers = 100
	mostNodes     = 20
	mostTypes     = 12
	mostListed    = 20
	// mostStrips is in bytes.
	mostStrips = 16 << 10
)

// limits are what else a page shows at most: a large one has less of each.
type limits struct{ cards, details, behind, locks int }

var (
	smallPage = limits{cards: 20, details: manyObservers, behind: 50, locks: 100}
	largePage = limits{cards: 12, details: 20, behind: 10, locks: 20}
)

// view is the data of the page.
type view struct {
	Node, Version, Cluster string
	// Exposed says that other hosts may read the page without TLS or authentication.
	Exposed bool
	// Now is the database's clock, or that of this host where it never answered.
	Now time.Time
	// Level and Headline are the verdict: "unknown" without a report.
	Level, Headline string
	// Err is why there is no report now, since FailedAt; empty when there is one.
	Err      string
	FailedAt time.Time
	// Stuck are the loops of this process that hang, Started is when it began to listen.
	Stuck   []string
	Started time.Time
	// Known reports whether there is a report, be it an old one.
	Known  bool
	Report status.Report
	// Large leaves out of the rows what a few hundred of them cannot have.
	Large bool

	Attention     []status.Attention
	MoreAttention int64
	Observers     []observerRow
	MoreObservers int64
	Rows, Events  int64
	Nodes         []nodeCard
	Work          work
	Sinks         []sinkRow
	Locks         []status.Lock
	// MoreLocks is how many there are beside Locks at least.
	MoreLocks int64
	Contended []status.Lock
	// Counted is how many locks are counted by subject and mode; 0: all are.
	Counted int64
	Sweeps  []status.Sweep
	// MoreSweeps and MoreNodes are left out.
	MoreSweeps, MoreNodes int64
}

func (s *Server) view(r *reading) view {
	v := view{Node: s.options.Node, Version: s.options.Version, Cluster: s.options.Cluster, Started: s.started, Report: r.report, Known: !r.readAt.IsZero(), Now: time.Now()}
	v.Exposed = s.options.Exposed != nil && s.options.Exposed()
	v.Level, v.Headline = string(r.report.Verdict.Level), r.report.Verdict.Headline()
	if r.err != nil {
		v.Level, v.Headline = "unknown", "unknown: the coordination database cannot be read"
		v.Err, v.FailedAt, v.Stuck = s.options.Explain(r.err), r.failedAt, s.options.Stuck()
	}
	if !v.Known {
		return v
	}
	v.Now = r.report.At.Add(time.Since(r.readAt))
	most := smallPage
	if v.Large = len(r.report.Observers) > manyObservers; v.Large {
		most = largePage
	}
	v.Attention, v.MoreAttention = cut(r.report.Verdict.Attention, most.cards)
	v.observers(most)
	v.nodes()
	v.sinks(most)
	v.locks(most)
	v.Sweeps, v.MoreSweeps = cut(r.report.Sweeps, mostListed)
	return v
}

// observerRow is a row of the table of observers.
type observerRow struct {
	status.Observer
	// Level is that of the verdict, or "paused" or "off"; Label is what the pill says.
	Level, Label string
	// Late reports whether the freshness objective is missed.
	Late   bool
	Strip  strip
	Last   status.PastPoll
	Full   *status.Generation
	Detail bool
}

// AsOf is when the stream was last known to be complete.
func (r observerRow) AsOf(now time.Time) time.Time {
	if r.Freshness == 0 {
		return time.Time{}
	}
	return now.Add(-r.Freshness)
}

// observers puts those first that need attention.
func (v *view) observers(most limits) {
	levels := make(map[string]status.Level)
	for _, a := range v.Report.Verdict.Attention {
		if _, worse := levels[a.What]; !worse {
			levels[a.What] = a.Level
		}
	}
	full := make(map[string]*status.Generation)
	for i, g := range v.Report.Generations {
		full[g.Observer] = &v.Report.Generations[i]
	}
	all := make([]observerRow, len(v.Report.Observers))
	for i, o := range v.Report.Observers {
		all[i] = observerRow{Observer: o, Full: full[o.ID], Level: string(levels["observer "+o.ID]), Label: o.State}
		all[i].judge()
		v.Rows += o.Recent.Rows
		v.Events += o.Recent.Events
	}
	order := []string{"failing", "degraded", "ok", "paused", "off"}
	slices.SortStableFunc(all, func(a, b observerRow) int {
		return cmp.Compare(slices.Index(order, a.Level), slices.Index(order, b.Level))
	})
	v.Observers, v.MoreObservers = cut(all, mostRows)
	polls := lastPolls(v.Report.Past, v.Report.At)
	room := mostStrips
	for i := range v.Observers {
		o := &v.Observers[i]
		o.Detail = i < most.details && (!v.Large || o.Level != "ok")
		if past := polls[o.ID]; len(past) > 0 {
			o.Last = past[len(past)-1]
			if o.Strip = drawStrip(past); o.Strip.size() > room {
				o.Strip = strip{}
			}
			room -= o.Strip.size()
		}
	}
}

func (r *observerRow) judge() {
	r.Late = r.FreshnessObjective > 0 && r.Freshness > r.FreshnessObjective
	switch {
	case r.State == status.StatePaused:
		r.Level = "paused"
	case r.State == status.StateDisabled || r.State == status.StateRemoved:
		r.Level, r.Late = "off", false
	case r.Level == "":
		r.Level = "ok"
	case r.Level == "failing" && r.State == status.StateActive:
		r.Label = "failing"
	}
}

// nodeCard is a node.
type nodeCard struct {
	status.Node
	// Color is its place among the colors of the chart.
	Color int
	// Other says in what it differs from most nodes.
	OtherVersion, OtherConfig bool
	// Share is its part of the turns, in percent; -1 where none is known.
	Share int
}

func (v *view) nodes() {
	versions, configs := make(map[string]int), make(map[string]int)
	for _, n := range v.Report.Nodes {
		if !n.Gone {
			versions[n.Version]++
			configs[n.ConfigHash]++
		}
	}
	v.Work = shareWork(v.Report.Past, v.Report.Nodes, v.Report.At)
	nodes, more := cut(v.Report.Nodes, mostNodes)
	v.MoreNodes = more
	version, hash := mostOf(versions), mostOf(configs)
	for i, n := range nodes {
		v.Nodes = append(v.Nodes, nodeCard{
			Node: n, Color: i % colors, Share: v.Work.share(n.Name),
			OtherVersion: n.Version != version, OtherConfig: n.ConfigHash != hash,
		})
	}
}

// mostOf is what is counted most; the first by name of several.
func mostOf(counts map[string]int) (most string) {
	for name, n := range counts {
		if n > counts[most] || n == counts[most] && name < most {
			most = name
		}
	}
	return most
}

// sinkRow is a sink in all streams.
type sinkRow struct {
	status.Sink
	Level, Label string
	// Waiting is how many events wait for it in all streams, and Lag how long the oldest of
	// them has waited.
	Waiting int64
	Parked  int64
	Streams int
	// Behind are the streams in which events wait, the worst first.
	Behind     []status.Sink
	MoreBehind int64
}

func (v *view) sinks(most limits) {
	at := make(map[string]int)
	parked := fn.By(v.Report.Parked, func(p status.Parked) string { return p.Sink })
	for _, s := range v.Report.Sinks {
		i, known := at[s.Sink]
		if !known {
			i, at[s.Sink] = len(v.Sinks), len(v.Sinks)
			v.Sinks = append(v.Sinks, sinkRow{Sink: s, Level: "ok", Label: "delivers", Parked: parked[s.Sink].Events})
		}
		row := &v.Sinks[i]
		row.Streams++
		row.Lag = max(row.Lag, s.Lag)
		if waits := s.Last - s.Offset; waits > 0 {
			row.Waiting += waits
			row.Behind = append(row.Behind, s)
		}
	}
	for i := range v.Sinks {
		row := &v.Sinks[i]
		for _, a := range v.Report.Verdict.Attention {
			if a.What == "sink "+row.Sink.Sink && row.Level == "ok" {
				row.Level, row.Label = string(a.Level), string(a.Level)
			}
		}
		if row.Pause != nil {
			row.Level, row.Label = "paused", "paused"
		}
		slices.SortStableFunc(row.Behind, func(a, b status.Sink) int { return cmp.Compare(b.Lag, a.Lag) })
		row.Behind, row.MoreBehind = cut(row.Behind, most.behind)
	}
	rank := func(r sinkRow) int { return slices.Index([]string{"failing", "degraded", "ok", "paused"}, r.Level) }
	slices.SortStableFunc(v.Sinks, func(a, b sinkRow) int { return cmp.Compare(rank(a), rank(b)) })
}

// locks puts the contended first.
func (v *view) locks(most limits) {
	all := slices.Clone(v.Report.Locks)
	slices.SortStableFunc(all, func(a, b status.Lock) int { return cmp.Compare(b.Waiting, a.Waiting) })
	listed, more := cut(all, most.locks)
	v.Locks, v.MoreLocks = listed, v.Report.MoreLocks+more
	for _, k := range v.Report.LockKinds {
		v.Counted += k.Locks
	}
	if v.Counted >= v.MoreLocks+int64(len(listed)) {
		v.Counted = 0
	}
	v.Contended, _ = cut(fn.Only(all, func(l status.Lock) bool { return l.Waiting > 0 }), mostListed)
}

// ExpiresAt is when a lease ends that is not renewed.
func (v view) ExpiresAt(l status.Lock) time.Time { return v.Report.At.Add(l.Left) }

// Color is the class of a node's color.
func (view) Color(node int) int { return node % colors }

// observerIn is an observer with the view that it is part of.
type observerIn struct {
	observerRow
	View view
}

// Of returns what the details of an observer are made of.
func (v view) Of(o observerRow) observerIn { return observerIn{o, v} }
