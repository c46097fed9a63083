package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// TestLateCommits polls beside writers that begin early, commit slowly, roll
// back and change rows in place: a reader that goes on from the newest timestamp loses
// a fifth of such rows.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	const lasting, enough = 4 * time.Second, 50
	url := mariatest.Start(t, mariatest.Options{}).New(t)
	exec(t, connect(t, url), `CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, status varchar(40) NOT NULL,
		updated_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), KEY (updated_at, id))`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	var written atomic.Int64
	for n := range 8 {
		conn := connect(t, url)
		writers.Go(func() { write(ctx, t, conn, rand.New(rand.NewPCG(uint64(n), 7)), &written) })
	}
	p := poller(t, url)
	for began := time.Now(); time.Since(began) < lasting || written.Load() < enough && !t.Failed(); {
		p.poll(t)
	}
	cancel()
	writers.Wait()
	p.poll(t)
	p.check(t)
}

// write runs transactions until ctx ends; the last one is finished. It changes
// rows of its own alone, or the writers would wait for each other.
func write(ctx context.Context, t *testing.T, conn *sql.Conn, random *rand.Rand, written *atomic.Int64) {
	const slow = 2500 * time.Millisecond // longer than the horizon's margin
	pause := func(most time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.Int64N(int64(most)))):
		}
	}
	var mine []int64
	for n := 0; ctx.Err() == nil; n++ {
		exec(t, conn, "BEGIN")
		if random.IntN(10) < 3 { // It has read something before it writes.
			exec(t, conn, "SELECT COUNT(*) FROM orders")
			pause(50 * time.Millisecond)
		}
		made, err := conn.ExecContext(t.Context(), "INSERT INTO orders (status) VALUES ('new')")
		if err != nil {
			t.Error(err)
			return
		}
		if len(mine) > 0 {
			exec(t, conn, fmt.Sprintf("UPDATE orders SET status = 'changed %d' WHERE id = %d", n, mine[random.IntN(len(mine))]))
		}
		if random.IntN(4) == 0 {
			pause(slow)
		}
		if random.IntN(10) == 0 {
			exec(t, conn, "ROLLBACK")
			continue
		}
		exec(t, conn, "COMMIT")
		written.Add(1)
		if id, err := made.LastInsertId(); err == nil {
			mine = append(mine, id)
		}
	}
}

// polls are those of one stream into a memory of its own.
type polls struct {
	observer *observer.Observer
	source   *mysql.Source
	db       *observertest.DB
}

func poller(t *testing.T, url string) *polls {
	t.Helper()
	o, err := observer.New(observer.Spec{
		Stream: "orders", EventType: "Seen", Detect: observer.DetectChange,
		Query: observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "updated_at"}, ChunkRows: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &polls{o, open(t, mysql.Options{URL: url}), observertest.NewDB()}
}

func (p *polls) poll(t *testing.T) {
	t.Helper()
	if _, err := p.observer.Poll(t.Context(), p.source, p.db.Acquire()); err != nil {
		t.Fatalf("Poll: %v", err)
	}
}

// check compares what was seen with what is there.
func (p *polls) check(t *testing.T) {
	t.Helper()
	seen, repeated := make(map[string]string), 0
	for _, e := range p.db.Events("orders") {
		if seen[e.Subject] == string(e.Data) {
			repeated++
		}
		seen[e.Subject] = string(e.Data)
	}
	rows, never, old := 0, 0, 0
	for _, row := range sourcetest.ReadAll(t, p.source, observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{}) {
		rows++
		switch seen[row.Key] {
		case string(row.Data):
		case "":
			never++
		default:
			old++
		}
	}
	t.Logf("%d rows, %d events: %d never seen, %d final states never seen, %d repeated", rows, len(p.db.Events("orders")), never, old, repeated)
	if never+old+repeated > 0 {
		t.Error("rows were lost or repeated")
	}
	if rows < 50 || len(seen) != rows {
		t.Errorf("%d rows are there and %d were seen: too few, or one of a transaction that was rolled back", rows, len(seen))
	}
}
