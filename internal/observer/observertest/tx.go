package observertest

import "github.com/observerd/observerd/internal/observer"

// Tx is a transaction: its rows have the timestamps of its statements, and
// appear when it commits.
type Tx struct {
	source *Source
	start  int64
	rows   []observer.Row
}

// Begin starts a transaction. It holds the horizon back until it ends.
func (s *Source) Begin() *Tx {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(1)
	tx := &Tx{source: s, start: s.clock}
	s.open[tx] = struct{}{}
	return tx
}

// Put inserts or replaces a row.
func (tx *Tx) Put(key, value string) {
	s := tx.source
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(1)
	tx.rows = append(tx.rows, At(key, value, s.clock))
}

// Commit makes the rows visible, with the timestamps that they were given. A
// transaction that the source has lost commits nothing.
func (tx *Tx) Commit() {
	s := tx.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[tx]; !open {
		return
	}
	for _, r := range tx.rows {
		s.delete(r.Key)
		s.add(r)
	}
	delete(s.open, tx)
}
