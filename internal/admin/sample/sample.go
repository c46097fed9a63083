// Package sample is a warehouse to try observerd on: a SQLite database with
// orders, stock and picking tasks that really move. It stands for the databases
// of other teams, so it knows nothing of the rest of the program.
package sample

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/observerd/observerd/internal/wait"
)

//go:embed schema.sql
var schema string

const (
	// Every is the time between movements in a warehouse that people look at.
	Every = time.Second
	// writeTimeout bounds one transaction, waiting for other writers included.
	writeTimeout = 15 * time.Second
	// movementsPerTransaction keeps transactions short: a reader's horizon and
	// another writer wait for them.
	movementsPerTransaction = 100
)

// Warehouse is an open sample warehouse. It is safe for concurrent use.
type Warehouse struct {
	db *sql.DB

	mu   sync.Mutex // orders the use of the random numbers
	rand *rand.Rand
}

// Open opens the warehouse in the file and fills it, if it is new. The folder of the file is
// created too, and a leading "sqlite:", as in the configuration of a source, is ignored. Equal
// seeds move equal warehouses in equal ways; 0 draws a seed.
func Open(ctx context.Context, path string, seed uint64) (*Warehouse, error) {
	path, isURL := strings.CutPrefix(path, "sqlite:")
	if isURL {
		path = strings.TrimPrefix(path, "//")
	}
	if path == "" {
		return nil, errors.New("open sample warehouse: no path")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the sample warehouse: %w", err)
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
	db, err := sql.Open("sqlite", "file:"+escaped+"?_journal_mode=WAL&_busy_timeout=10000&_synchronous=NORMAL&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open sample warehouse: %w", err)
	}
	db.SetMaxOpenConns(1)
	seed = cmp.Or(seed, rand.Uint64())
	w := &Warehouse{db: db, rand: rand.New(rand.NewPCG(seed, seed))}
	if err := w.create(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return w, nil
}

// Close closes the database.
func (w *Warehouse) Close() error { return w.db.Close() }

// create is safe to run beside another process that does the same.
func (w *Warehouse) create(ctx context.Context) error {
	return w.write(ctx, "create sample warehouse", func(m *movement) error {
		if err := m.exec(schema); err != nil {
			return err
		}
		var rows int
		if err := m.get(&rows, "SELECT count(*) FROM inventory"); err != nil || rows > 0 {
			return err
		}
		return m.fill()
	})
}

// Step makes n movements. It may be called while Run runs.
func (w *Warehouse) Step(ctx context.Context, n int) error {
	for n > 0 {
		part := min(n, movementsPerTransaction)
		n -= part
		err := w.write(ctx, "move sample warehouse", func(m *movement) error {
			for range part {
				if err := m.move(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Run makes one to three movements each time until ctx ends, which is not an error.
func (w *Warehouse) Run(ctx context.Context, every time.Duration) error {
	for wait.For(ctx, every) {
		if err := w.Step(ctx, 1+w.intN(3)); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (w *Warehouse) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

// write runs one transaction, which holds the write lock from its beginning:
// it reads before it writes, and must not find the rows changed in between.
func (w *Warehouse) write(ctx context.Context, operation string, change func(*movement) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if err := change(&movement{ctx: ctx, tx: tx, rand: w.rand}); err != nil {
		return fmt.Errorf("%s: %w", operation, errors.Join(err, tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}
