package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// page is what the manual has in SQL: the rights, the consumers' table, and what they run.
func page(t *testing.T) (rights, parts, take string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/delivery/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) != 3 {
		t.Fatalf("%d pieces of SQL, want 3", len(found))
	}
	return found[0][1], found[1][1], found[2][1]
}

func TestRightsOfThePageAreEnough(t *testing.T) {
	t.Parallel()
	rights, _, _ := page(t)
	owner := pgtest.New(t)
	execute(t, owner, "CREATE SCHEMA inbox", sqlsink.DDL("inbox"))
	role := pgtest.NewRole(t, owner)
	execute(t, owner, strings.ReplaceAll(rights, "observerd", connect(t, role).Config().User))
	for _, create := range []bool{false, true} { // Where there are tables nothing is created.
		s := open(t, sqlsink.Options{Sink: "inbox", URL: role, Schema: "inbox", Create: create}, 1)
		deliver(t, s, sinktest.Batch("orders", 1, 3))
	}
	probed(t, settings(t, role, "inbox", false))
}

// TestConsumersOfThePageSeeEachEventOnceAndInOrder has several share the work while it comes,
// and some of their transactions fail.
func TestConsumersOfThePageSeeEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	const consumers, streams, each = 4, 6, 400
	_, parts, take := page(t)
	url := pgtest.New(t)
	s := open(t, sqlsink.Options{Sink: "inbox", URL: url, Schema: "inbox", Create: true}, 1)
	execute(t, url, parts, `CREATE TABLE seen (n bigint GENERATED ALWAYS AS IDENTITY, stream text, seq bigint)`)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for range consumers {
		conn := connect(t, url)
		work.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				err := consume(ctx, conn, take, turn%5 == 3)
				if err != nil && ctx.Err() == nil && !errors.Is(err, errDies) {
					t.Error(err)
					return
				}
			}
		})
	}
	for from := int64(1); from < each; from += 10 {
		var batch []events.Event
		for stream := range streams {
			batch = append(batch, sinktest.Batch(fmt.Sprint("orders-", stream), from, from+9)...)
		}
		deliver(t, s, batch)
	}
	conn := connect(t, url)
	waittest.Eventually(t, time.Minute, func() error {
		if n := query[int](t, conn, `SELECT count(*) FROM seen`); n < streams*each {
			return fmt.Errorf("%d of %d events were seen", n, streams*each)
		}
		return nil
	})
	wrong := query[int](t, conn, `SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY stream ORDER BY n) AS place FROM seen) s WHERE seq <> place`)
	if n := query[int](t, conn, `SELECT count(*) FROM seen`); n != streams*each || wrong > 0 {
		t.Errorf("%d events were seen, want %d, and %d out of order", n, streams*each, wrong)
	}
}

var errDies = errors.New("the consumer dies")

// consume handles what the page's statement takes, in one transaction.
func consume(ctx context.Context, conn *pgx.Conn, take string, dies bool) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		taken, err := read(ctx, tx.Conn(), take)
		for _, e := range taken {
			_, insertErr := tx.Exec(ctx, `INSERT INTO seen (stream, seq) VALUES ($1, $2)`, e.Stream, e.Seq)
			err = errors.Join(err, insertErr)
		}
		if err == nil && dies {
			err = errDies
		}
		return err
	})
}

// open opens a sink for a term of that epoch.
func open(t *testing.T, o sqlsink.Options, epoch int64) *sqlsink.Sink {
	t.Helper()
	s, err := sqlsink.Open(t.Context(), o, sink.Term{Log: theLog, Epoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func deliver(t *testing.T, s sink.Sink, batch []events.Event) {
	t.Helper()
	if n, err := sinktest.Deliver(t.Context(), s, batch); err != nil || n != len(batch) {
		t.Fatalf("%d of %d events are stored: %v", n, len(batch), err)
	}
}
