package balance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/fairness"
	"github.com/observerd/observerd/test/kit/testbed"
)

// cluster is a case that runs.
type cluster struct {
	Case
	testbed *testbed.Testbed
	// database and source are URLs.
	database, source string
	conn             *pgx.Conn
	nodes            []*daemon.Process
	eligible         fairness.Eligible
}

// sourceSQL is a table that never changes: what is measured is who polls.
const sourceSQL = `
CREATE TABLE things (id TEXT PRIMARY KEY, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON things (updated_at, id);
INSERT INTO things SELECT 'thing-' || n FROM generate_series(1, 10) n`

// open starts the nodes of a case; close ends what it has started, also after
// an error.
func open(ctx context.Context, b *testbed.Testbed, c Case) (k *cluster, err error) {
	k = &cluster{Case: c, testbed: b, eligible: make(fairness.Eligible)}
	if k.database, err = b.Database(ctx, c.name()); err != nil {
		return k, err
	}
	if k.source, err = b.Database(ctx, c.name()+"_source"); err != nil {
		return k, err
	}
	if err := testbed.Execute(ctx, k.source, sourceSQL); err != nil {
		return k, fmt.Errorf("fill the source: %w", err)
	}
	if k.conn, err = pgx.Connect(ctx, k.database); err != nil {
		return k, fmt.Errorf("connect to the coordination database: %w", err)
	}
	for n := range c.Nodes {
		if err := k.start(ctx, n); err != nil {
			return k, err
		}
	}
	return k, testbed.Sees(ctx, k.nodes)
}

func (k *cluster) close(ctx context.Context) error {
	err := testbed.Stop(ctx, k.nodes...)
	if k.conn != nil {
		err = errors.Join(err, k.conn.Close(context.WithoutCancel(ctx)))
	}
	return err
}

func typeName(i int) string { return fmt.Sprintf("type%02d", i) }

// start starts the node of that number.
func (k *cluster) start(ctx context.Context, n int) error {
	name := fmt.Sprintf("n%02d", n)
	config := daemon.Config{
		Node: name, Database: k.database, Sources: map[string]string{"source": k.source},
		Interval: k.interval(), TTL: time.Minute,
		Files: map[string]string{"file": filepath.Join(k.testbed.Folder, k.name(), "events.jsonl")},
	}
	variables := []string{"OBSERVERD_LOG_LEVEL=info", "OBSERVERD_SCHEDULER_OBSERVER_SPREAD=" + k.Spread.String()}
	var mine []string
	for i := range k.Types {
		typ := typeName(i)
		config.Observers = append(config.Observers, fmt.Sprintf(
			"{id: %s, type: %s, event: Seen, source: source, table: things, key: id, timestamp: updated_at, detect: new}", typ, typ))
		if k.enabled(n, i) {
			mine = append(mine, typ)
			continue
		}
		variables = append(variables, "OBSERVERD_SCHEDULER_"+strings.ToUpper(typ)+"_OBSERVER_ENABLED=false")
	}
	node, err := k.testbed.Start(ctx, k.name(), config, variables...)
	if err != nil {
		return err
	}
	k.nodes = append(k.nodes, node)
	for _, typ := range mine {
		k.eligible[typ] = append(k.eligible[typ], name)
	}
	return nil
}

// forget takes a node out of the books; the caller ends it.
func (k *cluster) forget(node *daemon.Process) {
	k.nodes = slices.DeleteFunc(k.nodes, func(n *daemon.Process) bool { return n == node })
	for typ, names := range k.eligible {
		k.eligible[typ] = slices.DeleteFunc(names, func(name string) bool { return name == node.Name() })
	}
}
