package cluster_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/simtest"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	// articles of a market. Each seller takes at most one from the shelf, so
	// that a snapshot never lacks as many as the default of max-gone allows.
	articles = 20
	// chores are what the tasks of a market are about.
	chores = 12
)

// market is a source that others write, on a database of any vendor. Where orders
// carry whole seconds, many share a timestamp.
type market struct {
	// begin opens a transaction, which runs one statement at a time.
	begin func() (deal, error)
	// query returns rows of text.
	query func(t *testing.T, text string) [][]string
	// The statements in the database's own words, with the row's key last.
	say sayings
}

// deal is a transaction of a market.
type deal struct {
	exec func(text string, args ...any) error
	end  func(commit bool) error
}

// sayings are the statements of a market.
type sayings struct {
	order  string // key
	task   string // status, key
	change string // status, key
	put    string // status, key
	drop   string // key
}

// fill puts the goods and the chores there. Without a statement for chores, those come
// with the sellers.
func (m market) fill(t *testing.T, put, chore string) {
	t.Helper()
	deal := m.open(t)
	for n := range articles {
		must(t, deal.exec(put, "full", fmt.Sprintf("sku-%02d", n)))
	}
	for n := range chores {
		if chore != "" {
			must(t, deal.exec(chore, "open", fmt.Sprintf("task-%02d", n)))
		}
	}
	must(t, deal.end(true))
}

// open is begin for the test itself.
func (m market) open(t *testing.T) deal {
	t.Helper()
	d, err := m.begin()
	must(t, err)
	return d
}

// do runs one statement and commits it.
func (m market) do(t *testing.T, text string, args ...any) {
	t.Helper()
	deal := m.open(t)
	must(t, deal.exec(text, args...))
	must(t, deal.end(true))
}

// late makes an order that carries the present time and is committed when the
// function is called.
func (m market) late(t *testing.T, id string) (commit func()) {
	t.Helper()
	deal := m.open(t)
	must(t, deal.exec(m.say.order, id))
	return func() {
		t.Helper()
		must(t, deal.end(true))
	}
}

// rows are the keys and statuses of all tables, by the stream that polls them.
// An order counts with the status that it had when it was new.
func (m market) rows(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := make(map[string]map[string]string)
	for stream, query := range map[string]string{
		"orders": `SELECT order_id, 'NEW' FROM orders`,
		"tasks":  `SELECT task_id, status FROM tasks`,
		"stock":  `SELECT sku, status FROM stock`,
	} {
		all[stream] = make(map[string]string)
		for _, row := range m.query(t, query) {
			all[stream][row[0]] = row[1]
		}
	}
	return all
}

// sqlMarket is the market of a database/sql, less its statements.
func sqlMarket(t *testing.T, dialect string, db *sql.DB, say sayings) market {
	t.Helper()
	db.SetMaxOpenConns(8)
	return market{
		begin: func() (deal, error) {
			// It is not given up in its midst: a COMMIT whose client has gone would take
			// effect later than the test thinks.
			ctx := context.WithoutCancel(t.Context())
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return deal{}, err
			}
			return deal{
				exec: func(text string, args ...any) error {
					_, err := tx.ExecContext(ctx, text, args...)
					return err
				},
				end: func(commit bool) error {
					if commit {
						return tx.Commit()
					}
					return tx.Rollback()
				},
			}, nil
		},
		query: func(t *testing.T, text string) (all [][]string) {
			t.Helper()
			err := memory{dialect: dialect, db: db}.visit(t, text, func(scan func(...any) error) error {
				row := make([]string, 2)
				all = append(all, row)
				return scan(&row[0], &row[1])
			})
			must(t, err)
			return all
		},
		say: say,
	}
}

// late is how long the slowest transaction of a market stays open after it has
// taken the time that its rows carry.
const late = 1500 * time.Millisecond

// sellers of a market.
const sellers = 3

// busy lets sellers write side by side until the returned function is called. Rows
// carry the time of their statement, or that of the beginning of the transaction, and
// appear at its end, a little or much later, so that they appear in another order than
// that of their timestamps; some never do.
func (m market) busy(t *testing.T) (quiet func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for n := range sellers {
		s := &seller{market: m, sku: fmt.Sprintf("sku-%02d", n), random: rand.New(rand.NewPCG(simtest.Seed(), uint64(n)))}
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := s.write(ctx, fmt.Sprintf("w%d-%04d", n, i)); err != nil && ctx.Err() == nil {
					t.Errorf("write into the source: %v", err)
					return
				}
			}
		})
	}
	return func() {
		t.Helper()
		cancel()
		work.Wait()
	}
}

// lag keeps a transaction open, most of them shortly.
func lag(ctx context.Context, random *rand.Rand) error {
	d := time.Duration(random.Int64N(int64(late / 20)))
	if random.IntN(8) == 0 {
		d = time.Duration(random.Int64N(int64(late)))
	}
	return testbed.Wait(ctx, d)
}

// seller writes into a market. It alone moves its article.
type seller struct {
	market
	sku    string
	gone   bool
	random *rand.Rand
}

// write is one transaction. The statuses that it writes are nobody else's.
func (s *seller) write(ctx context.Context, id string) error {
	deal, err := s.begin()
	if err != nil {
		return err
	}
	gone := !s.gone && s.random.IntN(3) == 0
	if err := s.work(ctx, deal, id, gone); err != nil || s.random.IntN(10) == 0 {
		return errors.Join(err, deal.end(false))
	}
	s.gone = gone
	return deal.end(true)
}

// work is what is done in a transaction. The article comes last, after a while.
func (s *seller) work(ctx context.Context, d deal, id string, gone bool) error {
	err := errors.Join(
		d.exec(s.say.order, id), d.exec(s.say.order, id+"-b"), d.exec(s.say.task, id, fmt.Sprintf("task-%02d", s.random.IntN(chores))))
	if err == nil {
		err = lag(ctx, s.random)
	}
	switch {
	case err != nil:
		return err
	case gone:
		return d.exec(s.say.drop, s.sku)
	case s.gone:
		return d.exec(s.say.put, id, s.sku)
	}
	return d.exec(s.say.change, id, s.sku)
}

// repeated complains of an event that says of a row what the one before has
// said: no row is ever written twice with one status.
func repeated(history []recorded) error {
	last := make(map[string]recorded)
	for _, e := range history {
		row := e.stream + "/" + e.subject
		if before, ok := last[row]; ok && before.status == e.status && before.change == e.change {
			return fmt.Errorf("%s is %q twice, in the versions %d and %d", row, e.status, before.version, e.version)
		}
		last[row] = e
	}
	return nil
}

// checkToldOnce is checkHistory for rows that never return to what they were.
func checkToldOnce(t *testing.T, m memory, path string, rows map[string]map[string]string) {
	t.Helper()
	checkHistory(t, m, path, rows)
	log, err := m.logged(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := repeated(log); err != nil {
		t.Error(err)
	}
}

// must is for what a test does itself.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
