package torture

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// The coordination databases.
const (
	PostgreSQL = "postgres"
	SQLite     = "sqlite"
)

// Options of a run.
type Options struct {
	// Seed is what the plan and the writers' choices follow from.
	Seed int64
	// Duration is how long faults strike; 0 means 1 minute. What comes before
	// and after takes about half a minute more.
	Duration time.Duration
	// Every is the mean distance between the beginnings of two faults; 0 means
	// 3 s, or a quarter of the TTL or of the interval if that is more: some faults
	// outlast a TTL, and some strike only where polls come to something between them.
	Every time.Duration
	// Nodes is how many processes there are; 0 means 3.
	Nodes int
	// Binary is the program, built with the tag failpoints; required.
	Binary string
	// Holder is the program of [HolderPackage], built with the tag failpoints: three of it
	// hold general locks beside the nodes, with different TTLs. Empty means none.
	Holder string
	// Dir is the run's folder, which is made; required.
	Dir string
	// Coordination is [PostgreSQL] or [SQLite], a file that all nodes share; empty
	// means the first.
	Coordination string
	// Types is how many types are polled, each with one observer; 0 means 3.
	Types int
	// Interval is that of all types, TTL that of their locks; 0 means 1 s, or
	// 60 ms for each type if that is more, and 6 s or, with SQLite, 15 s.
	Interval, TTL time.Duration
	// Drain is for how long nothing may arrive once all is healed and something is
	// missing; 0 means 2 minutes, or 21 intervals if that is more: an observer that
	// has failed under faults rests for up to 20.
	Drain time.Duration
	// Mutant names the safety step that the binary lacks; empty for none.
	Mutant string
	// Failpoints take the place of those of the plan: each start of a node takes
	// the next, in turn. Nil leaves them to the plan.
	Failpoints []string
	// Faults are the kinds that strike; nil is all of [Kinds].
	Faults []string
	// ChunkRows is a setting of the daemon; 0 leaves it to the plan.
	ChunkRows int
	// Command reproduces the run, for its report.
	Command string
	// Progress tells a person who waits what is going on, one thing at a time;
	// nil tells nobody.
	Progress func(format string, args ...any) `json:"-"`
}

func (o Options) orDefaults() Options {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	set(&o.Duration, time.Minute)
	set(&o.Interval, max(time.Second, time.Duration(o.Types)*60*time.Millisecond).Round(time.Second))
	if o.Coordination == SQLite {
		set(&o.TTL, 15*time.Second) // The daemon allows no less.
	}
	set(&o.TTL, 6*time.Second)
	set(&o.Every, max(3*time.Second, o.TTL/4, o.Interval/4))
	set(&o.Drain, max(2*time.Minute, 21*o.Interval))
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Coordination == "" {
		o.Coordination = PostgreSQL
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	return o
}

func (o *Options) check() error {
	if o.Binary == "" || o.Dir == "" {
		return errors.New("a torture run needs a binary and a folder")
	}
	if o.Coordination != PostgreSQL && o.Coordination != SQLite {
		return fmt.Errorf("coordination by %q: it is %s or %s", o.Coordination, PostgreSQL, SQLite)
	}
	if most := 999; o.Types < 0 || o.Types > most {
		return fmt.Errorf("%d types: there may be %d at most", o.Types, most)
	}
	if o.Nodes < 1 || o.Nodes > 26 {
		return fmt.Errorf("%d nodes: there may be 1 to 26", o.Nodes)
	}
	for _, path := range []*string{&o.Binary, &o.Holder, &o.Dir} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether a kind of fault may strike.
func (o Options) wants(kind string) bool {
	return o.Faults == nil || slices.Contains(o.Faults, kind)
}

// names are those of the nodes: a, b, c and so on.
func (o Options) names() []string {
	var names []string
	for i := range o.Nodes {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

// rest is how long writers rest between two transactions: tiny chunks take
// their time, as do many types.
func (o Options) rest() time.Duration {
	if o.ChunkRows > 0 && o.ChunkRows < chunks[0] || o.shelves() > 0 {
		return 300 * time.Millisecond
	}
	return 0
}
