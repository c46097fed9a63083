package takeover

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/testbed"
)

// clusterRun is one cluster, and the faults that it meets.
type clusterRun struct {
	testbed       *testbed.Testbed
	name          string
	interval, ttl time.Duration
	// database and source are connections to the two databases, news another
	// one to the first, which is told of every commit.
	database, source, news *pgx.Conn
	members                []*member
	// inserted is how many rows the source has.
	inserted int64
}

// member is a node and its way to the coordination database.
type member struct {
	config  daemon.Config
	proxy   *netfault.Proxy
	process *daemon.Process
}

// rows are inserted for each sample and committed in chunks of that size, which
// makes a poll of a hundred commits.
const (
	rowsOfSample = 5_000
	chunkSize    = 50
)

const sourceSQL = `
CREATE TABLE orders (order_id TEXT PRIMARY KEY, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON orders (updated_at, order_id)`

// witnessSQL notes every commit of a chunk: by which node, as the lock has it in
// the same transaction. When it took effect the server knows by the row's xmin.
const witnessSQL = `
CREATE TABLE takeover_commit (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, node TEXT NOT NULL);
CREATE FUNCTION takeover_witness() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  holder TEXT;
BEGIN
  SELECT o.node INTO holder FROM obs_lock o JOIN int_lock l USING (lock_key, region)
   WHERE o.name = 'order-observer-poll' AND o.term = l.client_id;
  INSERT INTO takeover_commit (node) VALUES (coalesce(holder, ''));
  PERFORM pg_notify('takeover', coalesce(holder, ''));
  RETURN NULL;
END
$$;
CREATE TRIGGER takeover_witness AFTER UPDATE ON obs_cursor
  FOR EACH ROW WHEN (NEW.last_seq > OLD.last_seq) EXECUTE FUNCTION takeover_witness()`

// openRun starts a cluster; close ends what it has started, also after an
// error.
func openRun(ctx context.Context, o Options, number int, ttl time.Duration) (n *clusterRun, err error) {
	n = &clusterRun{
		testbed: o.Testbed, name: fmt.Sprintf("takeover_%s_%d", ttl, number), ttl: ttl,
		interval: o.Interval + time.Duration(number)*time.Second,
	}
	database, err := o.Testbed.Database(ctx, n.name)
	if err != nil {
		return n, err
	}
	source, err := o.Testbed.Database(ctx, n.name+"_source")
	if err != nil {
		return n, err
	}
	for conn, where := range map[**pgx.Conn]string{&n.database: database, &n.news: database, &n.source: source} {
		if *conn, err = pgx.Connect(ctx, where); err != nil {
			return n, fmt.Errorf("connect: %w", err)
		}
	}
	if _, err := n.source.Exec(ctx, sourceSQL); err != nil {
		return n, fmt.Errorf("prepare the source: %w", err)
	}
	for i := range nodes {
		if err := n.add(ctx, fmt.Sprintf("n%d", i), database, source); err != nil {
			return n, err
		}
	}
	if _, err := n.database.Exec(ctx, witnessSQL); err != nil {
		return n, fmt.Errorf("install the witness: %w", err)
	}
	if _, err := n.news.Exec(ctx, "LISTEN takeover"); err != nil {
		return n, fmt.Errorf("listen to commits: %w", err)
	}
	return n, nil
}

func (n *clusterRun) add(ctx context.Context, name, database, source string) error {
	proxy, err := netfault.Open(ctx, n.testbed.Address())
	if err != nil {
		return err
	}
	m := &member{proxy: proxy}
	n.members = append(n.members, m)
	through, err := testbed.Through(database, proxy.Addr())
	if err != nil {
		return err
	}
	m.config = daemon.Config{
		Node: name, Database: through, Sources: map[string]string{"source": source}, Interval: n.interval, TTL: n.ttl,
		Observers: []string{fmt.Sprintf(
			"{id: orders, type: order, source: source, table: orders, key: order_id, timestamp: updated_at, chunk-size: %d}", chunkSize)},
		Files: map[string]string{"file": filepath.Join(n.testbed.Folder, n.name, "events.jsonl")},
	}
	return n.start(ctx, m)
}

func (n *clusterRun) start(ctx context.Context, m *member) (err error) {
	m.process, err = n.testbed.Start(ctx, n.name, m.config, "OBSERVERD_LOG_LEVEL=info")
	return err
}

// whole waits until every node is there, ready, and known to the others.
func (n *clusterRun) whole(ctx context.Context) error {
	processes := make([]*daemon.Process, len(n.members))
	for i, m := range n.members {
		if !m.process.Running() {
			if err := n.start(ctx, m); err != nil {
				return err
			}
		}
		processes[i] = m.process
	}
	return testbed.Sees(ctx, processes)
}

func (n *clusterRun) close(ctx context.Context) error {
	var errs []error
	for _, m := range n.members {
		if m.process != nil && m.process.Running() { // The last to be struck may have ended.
			errs = append(errs, testbed.Stop(ctx, m.process))
		}
		m.proxy.Close()
	}
	for _, conn := range []*pgx.Conn{n.database, n.news, n.source} {
		if conn != nil {
			errs = append(errs, conn.Close(context.WithoutCancel(ctx)))
		}
	}
	return errors.Join(errs...)
}

// member is the one of that name; nil for none.
func (n *clusterRun) member(name string) *member {
	for _, m := range n.members {
		if m.config.Node == name {
			return m
		}
	}
	return nil
}
