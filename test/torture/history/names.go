package history

import (
	"maps"
	"slices"
)

// names keeps one copy of each string.
type names map[string]string

func (n names) share(texts ...*string) {
	for _, text := range texts {
		known, ok := n[*text]
		if !ok {
			known = *text
			n[known] = known
		}
		*text = known
	}
}

func (n names) event(e *Event) { n.share(&e.Stream, &e.ID, &e.Subject, &e.Change, &e.Shape, &e.Xid) }

// delivered is a line of what the sinks have. Each sink begins with a line that
// has no event, so that one which got nothing is not forgotten.
type delivered struct {
	Sink  string
	Event *Event
}

// deliveries is the file of the events that sinks have: sink by sink, each in
// its order.
type deliveries struct {
	run  *Run
	once names
}

func (d *deliveries) file() string { return "delivered.jsonl" }

func (d *deliveries) save(path string) error {
	return saveLines(path, func(write func(any) error) error {
		for _, sink := range slices.Sorted(maps.Keys(d.run.Delivered)) {
			if err := write(delivered{Sink: sink}); err != nil {
				return err
			}
			for i := range d.run.Delivered[sink] {
				if err := write(delivered{sink, &d.run.Delivered[sink][i]}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (d *deliveries) load(path string) error {
	d.run.Delivered = make(map[string][]Event)
	return loadLines(path, func(line *delivered) {
		d.once.share(&line.Sink)
		events := d.run.Delivered[line.Sink]
		if line.Event != nil {
			d.once.event(line.Event)
			events = append(events, *line.Event)
		}
		d.run.Delivered[line.Sink] = events
	})
}
