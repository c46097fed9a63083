package sqlsink_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// database is the URL of a database with the tables of a feed, and what comes behind them.
func database(t *testing.T, statements ...string) string {
	t.Helper()
	url := pgtest.New(t)
	execute(t, url, append([]string{sqlsink.DDL("public")}, statements...)...)
	return url
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	if err := pgtest.Execute(t.Context(), url, statements...); err != nil {
		t.Fatal(err)
	}
}

// connect looks at a database past the sink.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, conn *pgx.Conn, text string, args ...any) T {
	t.Helper()
	var value T
	if err := conn.QueryRow(t.Context(), text, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// read returns the events as a reader finds them.
func read(ctx context.Context, conn *pgx.Conn, text string, args ...any) ([]events.Event, error) {
	rows, _ := conn.Query(ctx, text, args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e events.Event, err error) {
		var at, observed *time.Time
		err = row.Scan(&e.ID, &e.Stream, &e.Seq, &e.Type, &e.Subject, &e.Change, &e.Version, &at, &observed, &e.Snapshot, (*[]byte)(&e.Data))
		if at != nil {
			e.Time = *at
		}
		if observed != nil {
			e.Observed = *observed
		}
		return e, err
	})
}

const storedSQL = `SELECT event_id, stream, seq, type, subject, change, version, time, observed, snapshot, data::text FROM obs_feed_event ORDER BY id`

// cut has the next batch not arrive, or its answer. A statement of which the driver only asks
// for a description comes without a COMMIT.
func cut(proxy *netfault.Proxy, arrives bool) {
	var done atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !bytes.Contains(request, []byte("obs_feed_event")) || !bytes.Contains(request, []byte("COMMIT")) || done.Swap(true) {
			return netfault.Fault{}
		}
		if !arrives {
			proxy.Cut()
		}
		return netfault.Fault{LoseAnswer: arrives}
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"a batch does not arrive": false, "an answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				direct := database(t, `ALTER TABLE obs_feed_event ADD CHECK (type <> 'poison')`)
				proxied, proxy := netfault.StartBefore(t, direct)
				conn := connect(t, direct)
				return sinktest.Harness{
					Open: func(ctx context.Context, term sink.Term) (sink.Sink, error) {
						return sqlsink.Open(ctx, sqlsink.Options{Sink: "inbox", URL: proxied, Schema: "public"}, term)
					},
					Stored: func() ([]events.Event, error) { return read(t.Context(), conn, storedSQL) },
					Tear:   func() { cut(proxy, arrives) },
					Refuse: func() (allow func()) {
						proxy.Refuse(true)
						return func() { proxy.Refuse(false) }
					},
					Stall: func() (resume func()) {
						proxy.SetImpairment(netfault.Impairment{Up: netfault.Stalled, Down: netfault.Stalled})
						return func() { proxy.SetImpairment(netfault.Impairment{}) }
					},
					Poison:  func(e *events.Event) { e.Type = "poison" },
					Resumes: true, JSON: true,
				}
			})
		})
	}
}

var theLog = uuid.MustParse("00000000-0000-8000-8000-000000000001")
