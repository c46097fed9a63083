package sourcetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/simtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// polls is a stream that is polled from the source under test into a memory of
// its own. Each poll may be that of another node: an observer keeps nothing.
type polls struct {
	db   *observertest.DB
	spec observer.Spec
	src  observer.Source
	// exact says that the source can see open transactions.
	exact bool
}

func (f Fixture) polls(detect observer.Detect) *polls {
	return &polls{
		db: observertest.NewDB(), src: f.Source, exact: f.Exact,
		spec: observer.Spec{Stream: "orders", EventType: "Seen", Detect: detect, Query: orders(), ChunkRows: 7},
	}
}

func (p *polls) try(ctx context.Context) (observer.Stats, error) {
	o, err := observer.New(p.spec)
	if err != nil {
		return observer.Stats{}, err
	}
	return o.Poll(ctx, p.src, p.db.Acquire())
}

func (p *polls) poll(t *testing.T) observer.Stats {
	t.Helper()
	stats, err := p.try(t.Context())
	if err != nil {
		t.Fatalf("Poll: %v", err)
	}
	return stats
}

// pollAll polls until the source has seen what is open, if it can. A poll that had
// to do without, for once, may leave what is below the newest row to a later one.
func (p *polls) pollAll(t *testing.T) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		if stats := p.poll(t); stats.ExactHorizon != p.exact {
			return fmt.Errorf("the horizon is exact: %t, want %t", stats.ExactHorizon, p.exact)
		}
		return nil
	})
}

// statuses are what the events say of each key, in order.
func (p *polls) statuses(t *testing.T) map[string][]string {
	t.Helper()
	said := make(map[string][]string)
	for _, e := range p.db.Events("orders") {
		said[e.Subject] = append(said[e.Subject], string(e.Change)+" "+member(t, e.Data, "status"))
	}
	return said
}

// updatedWhileRead changes rows that a poll has not reached yet.
func updatedWhileRead(t *testing.T, f Fixture) {
	f.exec(ordersTable, ordersIndex)
	for i := range 30 {
		f.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, 'old', '%s')", i+1, second(i)))
	}
	p := f.polls(observer.DetectChange)
	p.src = &midway{Source: f.Source, row: 10, do: func() {
		f.exec(fmt.Sprintf("UPDATE orders SET status = 'new', updated_at = %s WHERE order_id IN (5, 20, 25)", f.Now))
	}}
	p.poll(t)
	p.src = f.Source
	p.poll(t)
	p.poll(t)
	for key, said := range p.statuses(t) {
		want := []string{"new old"}
		if slices.Contains([]string{"5", "20", "25"}, key) {
			want = append(want, "changed new")
		}
		if !slices.Equal(said, want) {
			t.Errorf("key %s: %v, want %v", key, said, want)
		}
	}
}

// midway does something once, before a row is read.
type midway struct {
	observer.Source
	row int
	do  func()
}

// Read implements [observer.Source].
func (m *midway) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := m.Source.Read(ctx, q, in)
	return &midwayRows{Rows: rows, m: m}, err
}

type midwayRows struct {
	observer.Rows
	m *midway
	n int
}

// Next implements [observer.Rows].
func (r *midwayRows) Next() bool {
	if r.n++; r.n == r.m.row {
		r.m.do()
	}
	return r.Rows.Next()
}

// lateCommits is the writer that loses a fifth of its rows to a reader that goes on
// from the newest timestamp: transactions begin early and commit late, in any
// order, and polls come in between.
func lateCommits(t *testing.T, f Fixture) {
	f.exec(ordersTable, ordersIndex)
	seed := simtest.Seed()
	w := &lateWriter{Fixture: f, random: rand.New(rand.NewPCG(seed, 0)), last: make(map[string]string)}
	p := f.polls(observer.DetectChange)
	for range 120 {
		w.step()
		if w.random.IntN(4) == 0 {
			p.poll(t)
		}
	}
	for len(w.open) > 0 {
		w.commit()
		p.poll(t)
	}
	p.pollAll(t)
	said := p.statuses(t)
	for key, want := range w.last {
		got := said[key]
		if len(got) == 0 || got[len(got)-1] != "new "+want && got[len(got)-1] != "changed "+want {
			t.Errorf("key %s: events %v, last status %s (seed %d)", key, got, want, seed)
		}
		if distinct := slices.Compact(slices.Clone(got)); len(distinct) != len(got) {
			t.Errorf("key %s: repeated: %v (seed %d)", key, got, seed)
		}
	}
	if len(said) != len(w.last) {
		t.Errorf("%d keys were seen of %d (seed %d)", len(said), len(w.last), seed)
	}
}

// lateWriter has up to five transactions open, each with one new row and
// perhaps a change of an old one.
type lateWriter struct {
	Fixture
	random *rand.Rand
	open   []lateTx
	last   map[string]string // of what is committed
	rows   int
}

type lateTx struct {
	exec   func(string)
	commit func()
	wrote  map[string]string
}

func (w *lateWriter) step() {
	most := 5
	if w.OneWriter {
		most = 1
	}
	if len(w.open) < most && w.random.IntN(2) == 0 {
		w.begin()
		return
	}
	if len(w.open) > 0 {
		w.commit()
	}
}

func (w *lateWriter) begin() {
	exec, commit := w.Begin()
	tx := lateTx{exec: exec, commit: commit, wrote: make(map[string]string)}
	w.rows++
	status := fmt.Sprintf("v%d", w.rows)
	exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, '%s', %s)", w.rows, status, w.Now))
	tx.wrote[number(w.rows)] = status
	if old := w.random.IntN(w.rows) + 1; w.committed(old) {
		exec(fmt.Sprintf("UPDATE orders SET status = 'u%d', updated_at = %s WHERE order_id = %d", w.rows, w.Now, old))
		tx.wrote[number(old)] = fmt.Sprintf("u%d", w.rows)
	}
	w.open = append(w.open, tx)
}

// committed reports whether a row is there and no open transaction has locked it.
func (w *lateWriter) committed(id int) bool {
	for _, tx := range w.open {
		if _, ok := tx.wrote[number(id)]; ok {
			return false
		}
	}
	_, ok := w.last[number(id)]
	return ok
}

func (w *lateWriter) commit() {
	i := w.random.IntN(len(w.open))
	tx := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	tx.commit()
	for key, status := range tx.wrote {
		w.last[key] = status
	}
}

// member returns a text member of a row's data, whatever the case of its name.
func member(t *testing.T, data []byte, name string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for n, v := range all {
		if text, ok := v.(string); ok && strings.EqualFold(n, name) {
			return text
		}
	}
	return ""
}
