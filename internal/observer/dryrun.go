package observer

import (
	"context"
	"slices"
)

// DryRun returns a store for one poll that writes nothing: it hands each chunk
// to visit instead of committing it, and lets later chunks see earlier ones. A chunk is valid
// until visit returns.
// An error of visit ends the poll. What the poll observes is kept in memory,
// so MaxChanged should bound a first poll. The store is not safe for
// concurrent use. The first reading of the cursor goes to st, which may create
// it.
func DryRun(st Store, visit func(Chunk) error) Store {
	return &dryRun{Store: st, visit: visit, rows: make(map[string]Observed)}
}

type dryRun struct {
	Store
	visit func(Chunk) error
	// cursor is the one after the last chunk; nil before the first.
	cursor *Cursor
	rows   map[string]Observed
}

func (d *dryRun) Cursor(ctx context.Context, stream string) (Cursor, error) {
	if d.cursor != nil {
		return *d.cursor, nil
	}
	return d.Store.Cursor(ctx, stream)
}

func (d *dryRun) Observed(ctx context.Context, c Cursor, keys []string) ([]Observed, error) {
	known, err := d.Store.Observed(ctx, c, keys)
	for i := range known {
		if o, ok := d.rows[keys[i]]; ok {
			known[i] = o
		}
	}
	return known, err
}

// Live visits all rows, whatever the key: those that were found before are gone.
func (d *dryRun) Live(ctx context.Context, c Cursor, _ string, visit func(Observed) error) error {
	for _, o := range d.rows {
		if o.Gone {
			continue
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	return d.Store.Live(ctx, c, "", func(o Observed) error {
		if _, ok := d.rows[o.Key]; ok {
			return nil
		}
		return visit(o)
	})
}

func (d *dryRun) Commit(_ context.Context, ch Chunk) (Cursor, error) {
	if err := d.visit(ch); err != nil {
		return Cursor{}, err
	}
	for _, o := range slices.Concat(ch.New, ch.Changed) {
		o.Hash = slices.Clone(o.Hash) // Its batch is used again.
		d.rows[o.Key] = o
	}
	d.cursor = &ch.After
	return ch.After, nil
}
