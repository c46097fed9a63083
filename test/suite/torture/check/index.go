package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// stream is all that is known of one stream.
type stream struct {
	history.Stream
	rows   map[string]*row
	keys   []string         // of rows, sorted
	events []*history.Event // by sequence
	steps  []*history.Step  // by id
	// commits are the steps that appended events.
	commits []*history.Step
	polls   []*history.Poll // by their begin
	notes   []*history.Part // by id
	acts    []*history.Act  // by time
	// acted has what an operator did in each transaction.
	acted map[string]*history.Act
	// forgot are the sequences after which a reset forgot what was observed:
	// what follows is an epoch of its own, in which each row may come again.
	forgot []int64
	// defined are the steps that changed the definition: each row may change with
	// them.
	defined []*history.Step
	// leftOver are the steps behind one after which there may be nothing to read.
	leftOver map[*history.Step]bool
}

// row is one row of the source. One that the source never had, but an event
// speaks of, has no writes.
type row struct {
	writes []*history.Write // by version
	events []*history.Event // by sequence
}

// last is the last committed state.
func (r *row) last() *history.Write { return r.writes[len(r.writes)-1] }

func (c *checker) index() {
	c.byName = make(map[string]*stream)
	for _, meta := range c.run.Meta.Streams {
		s := &stream{Stream: meta, rows: make(map[string]*row), acted: make(map[string]*history.Act)}
		c.streams = append(c.streams, s)
		c.byName[s.Name] = s
	}
	c.indexWrites()
	c.indexEvents()
	c.indexSteps()
	c.indexLocks()
	counts := c.report.Counts
	counts[Versions], counts[Events], counts[Parts] = len(c.run.Writes), len(c.run.Events), len(c.run.Parts)
}

func (s *stream) row(key string) *row {
	r := s.rows[key]
	if r == nil {
		r = &row{}
		s.rows[key] = r
	}
	return r
}

func (c *checker) indexWrites() {
	foreign := ""
	for i := range c.run.Writes {
		w := &c.run.Writes[i]
		s := c.byName[w.Stream]
		if s == nil {
			foreign = w.Stream
			continue
		}
		r := s.row(w.Key)
		r.writes = append(r.writes, w)
	}
	var broken []string
	for _, s := range c.streams {
		c.report.Counts[Rows] += len(s.rows)
		for key, r := range s.rows {
			slices.SortStableFunc(r.writes, func(a, b *history.Write) int { return cmp.Compare(a.N, b.N) })
			for i, w := range r.writes {
				if w.N != int64(i)+1 {
					broken = append(broken, fmt.Sprintf("version %d of row %q of %s has the number %d", i+1, key, s.Name, w.N))
					break
				}
			}
		}
	}
	if foreign != "" {
		c.void("the source has writes of the stream %q, which the run does not name", foreign)
	}
	if len(broken) > 0 {
		c.void("the record of the source is broken in %d rows, such as: %s", len(broken), slices.Min(broken))
	}
}

func (c *checker) indexEvents() {
	for i := range c.run.Events {
		e := &c.run.Events[i]
		if s := c.byName[e.Stream]; s != nil {
			s.events = append(s.events, e)
		} else {
			c.blame(Unexpected, e.Stream, e.Subject, time.Time{}, "event %d: nobody observes its stream", e.Seq)
		}
	}
	for _, s := range c.streams {
		slices.SortStableFunc(s.events, func(a, b *history.Event) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, e := range s.events {
			r := s.row(e.Subject)
			r.events = append(r.events, e)
		}
		s.keys = slices.Sorted(maps.Keys(s.rows))
	}
}

func (c *checker) indexSteps() {
	collect(c, c.run.Steps, func(s *stream) *[]*history.Step { return &s.steps }, func(v *history.Step) string { return v.Stream })
	collect(c, c.run.Polls, func(s *stream) *[]*history.Poll { return &s.polls }, func(v *history.Poll) string { return v.Stream })
	collect(c, c.run.Parts, func(s *stream) *[]*history.Part { return &s.notes }, func(v *history.Part) string { return v.Stream })
	collect(c, c.run.Acts, func(s *stream) *[]*history.Act { return &s.acts }, func(v *history.Act) string { return v.Subject })
	for _, s := range c.streams {
		slices.SortStableFunc(s.steps, func(a, b *history.Step) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortStableFunc(s.polls, func(a, b *history.Poll) int { return a.Begin.Compare(b.Begin) })
		slices.SortStableFunc(s.notes, func(a, b *history.Part) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortStableFunc(s.acts, func(a, b *history.Act) int { return a.At.Compare(b.At) })
		for _, act := range s.acts {
			s.acted[act.Xid] = act
		}
		definition, allRead := "", false
		s.leftOver = make(map[*history.Step]bool)
		for _, step := range s.steps {
			if allRead {
				s.leftOver[step] = true
			}
			allRead = step.AllRead
			if step.Definition != definition {
				s.defined = append(s.defined, step)
			}
			definition = step.Definition
			if step.NewSeq > step.OldSeq {
				s.commits = append(s.commits, step)
			}
			if act := s.acted[step.Xid]; act != nil && act.Action == "reset" && act.Detail == "forget" {
				s.forgot = append(s.forgot, step.NewSeq)
			}
		}
		slices.Sort(s.forgot)
	}
}

// collect gives each stream its records. Acts on locks are of no stream.
func collect[T any](c *checker, all []T, list func(*stream) *[]*T, of func(*T) string) {
	for i := range all {
		if s := c.byName[of(&all[i])]; s != nil {
			*list(s) = append(*list(s), &all[i])
		}
	}
}
