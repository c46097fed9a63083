package torture

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan is what is to happen in a run. It follows from the options alone: one
// seed, one plan.
type Plan struct {
	Faults []Planned
	// Starts say how processes are started: the first start of any node takes
	// the first, the next the second, and so on in turn.
	Starts []Start
}

// Planned is a fault that is to strike.
type Planned struct {
	// At is the time since the nodes were ready.
	At   time.Duration
	Kind string
	// Node is whom it strikes; empty for all.
	Node string `json:",omitempty"`
	// For is how long it lasts, where it lasts.
	For time.Duration `json:",omitempty"`
	// Where is what it strikes of a node or of a cluster: coordination, source,
	// both, or a stream.
	Where string `json:",omitempty"`
	// Number varies the fault; what it means depends on the kind.
	Number int `json:",omitempty"`
}

// Start is how a process is started.
type Start struct {
	// After is how long the node was away before.
	After time.Duration
	// Failpoints is the value of the variable; empty for none.
	Failpoints string `json:",omitempty"`
	// Chunk is how many rows the process commits at once.
	Chunk int
}

// starts is how many are planned; a run that has more begins again with the
// first.
const starts = 400

// NewPlan makes the plan of a run.
func NewPlan(o Options) (Plan, error) {
	o = o.orDefaults()
	kinds, err := chosen(o.Faults, o.Coordination)
	if err != nil {
		return Plan{}, err
	}
	ofPrograms := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.program })
	kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.program })
	random := rand.New(rand.NewPCG(uint64(o.Seed), 0x746f7274757265)) //nolint:gosec // Choices that can be made again.
	var p Plan
	deck := dealer{random: random, kinds: kinds}
	first := o.Every / 2
	if o.Faults == nil {
		p.Faults, first = overture(random, kinds, o), o.TTL+overtureTakes
	}
	for at := first; at < o.Duration && len(kinds) > 0; at += between(random, o.Every/2, o.Every*3/2) {
		p.Faults = append(p.Faults, draw(random, deck.next(), at, o))
	}
	p.Faults = append(p.Faults, planOfPrograms(o, ofPrograms)...)
	slices.SortStableFunc(p.Faults, func(a, b Planned) int { return cmp.Compare(a.At, b.At) })
	for n := range starts {
		p.Starts = append(p.Starts, drawStart(random, o, n))
	}
	return p, nil
}

// planOfPrograms are the faults of programs, which come apart from those of nodes: the same
// seed has the same of these with programs and without. They come so seldom that some
// programs are at work at most times.
func planOfPrograms(o Options, kinds []kind) (all []Planned) {
	if o.Holder == "" || len(kinds) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(uint64(o.Seed), 0x70726f6772616d)) //nolint:gosec // Choices that can be made again.
	deck := dealer{random: random, kinds: kinds}
	for at := o.Every; at < o.Duration; at += between(random, o.Every*2, o.Every*3) {
		all = append(all, draw(random, deck.next(), at, o))
	}
	return all
}

// overtureTakes is how long, beside the TTL, other faults hold back at first.
const overtureTakes = 5 * time.Second

// overture are faults that need nodes which nothing else disturbs for a while,
// one for each node: a run in which no stale commit was refused, and no answer
// was lost, would prove nothing.
func overture(random *rand.Rand, kinds []kind, o Options) []Planned {
	var all []Planned
	nodes := o.names()
	for i, name := range []string{"stop-in-commit", "lost-answer", "orphan", "kill"} {
		k, ok := byName(kinds, name)
		if !ok {
			continue
		}
		f := draw(random, k, time.Duration(i+1)*time.Second, o)
		f.Node = nodes[i%len(nodes)]
		all = append(all, f)
	}
	// The one that was stopped is not killed.
	all[len(all)-1].Node = nodes[1%len(nodes)]
	return all
}

// dealer deals each kind once, and then all of them by their weights, again and
// again, so that short runs have every kind and long ones the right mixture.
type dealer struct {
	random *rand.Rand
	kinds  []kind
	deck   []kind
	dealt  bool
}

func (d *dealer) next() kind {
	if len(d.deck) == 0 {
		for _, k := range d.kinds {
			copies := 1
			if d.dealt {
				copies = k.weight
			}
			d.deck = append(d.deck, slices.Repeat([]kind{k}, copies)...)
		}
		d.random.Shuffle(len(d.deck), func(i, j int) { d.deck[i], d.deck[j] = d.deck[j], d.deck[i] })
		d.dealt = true
	}
	k := d.deck[0]
	d.deck = d.deck[1:]
	return k
}

func draw(random *rand.Rand, k kind, at time.Duration, o Options) Planned {
	f := Planned{At: at.Round(time.Millisecond), Kind: k.name, Number: random.IntN(1000)}
	node := o.names()[random.IntN(o.Nodes)]
	if !k.everybody {
		f.Node = node
	}
	ttl := o.TTL
	if k.program {
		ttls := o.programTTLs()
		n := random.IntN(len(ttls))
		f.Node, ttl = programName(n), ttls[n]
	}
	if n := random.IntN(max(1, len(k.where))); len(k.where) > 0 {
		f.Where = k.where[n]
	}
	if o.Coordination == SQLite && slices.Contains(places, f.Where) {
		f.Where = atSource // No network leads to a file.
	}
	least, most := k.lasts(ttl)
	f.For = between(random, least, most).Round(time.Millisecond)
	return f
}

// between is a time from least up to most.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// often are the kinds that are planned so often that one of them must bite.
func (p Plan) often() []string {
	count := make(map[string]int)
	for _, f := range p.Faults {
		count[f.Kind]++
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		if count[k] > 2 {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
