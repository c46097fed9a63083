package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/turn"
)

// Nodes are the nodes that are alive, or were lately (obs_node).
type Nodes DB

// Nodes returns the nodes of the cluster.
func (db *DB) Nodes() *Nodes { return (*Nodes)(db) }

// Beat notes that the node is alive, and which types it polls.
func (t *Nodes) Beat(ctx context.Context, n turn.Node) error {
	_, err := t.db.Exec(ctx, "note that this node is alive", t.sql.SQL().Node.Beat,
		n.BootID, n.Name, n.Version, n.Backend, n.ConfigHash, strings.Join(n.Types, ","), strings.Join(n.Unreachable, ","), strings.Join(n.Sinks, ","),
		(*DB)(t).shownBy(), strings.Join(n.Outdated, ","), intervalsText(n.Intervals))
	return err
}

// Nodes returns the nodes that were seen within that time, sorted by name and
// boot id.
func (t *Nodes) Nodes(ctx context.Context, within time.Duration) ([]turn.Node, error) {
	return sqldb.All(ctx, t.db, "read the live nodes", t.sql.SQL().Node.Nodes,
		func(scan sqldb.Scan, n *turn.Node) error {
			var types, unreachable, outdated, sinks, intervals string
			err := scan(&n.BootID, &n.Name, &n.Version, &n.Backend, &n.ConfigHash, &types, &unreachable, &outdated, &sinks, &intervals,
				sqldb.ScanTime(&n.StartedAt), sqldb.ScanTime(&n.SeenAt))
			n.Types, n.Unreachable, n.Outdated = sqldb.SplitList(types), sqldb.SplitList(unreachable), sqldb.SplitList(outdated)
			n.Sinks, n.Intervals = sqldb.SplitList(sinks), parseIntervals(intervals)
			return err
		}, within.Seconds())
}

// intervalsText is the form of the column, with milliseconds.
func intervalsText(intervals map[string]time.Duration) string {
	one := func(typ string) string { return fmt.Sprintf("%s=%d", typ, intervals[typ].Milliseconds()) }
	return strings.Join(fn.Each(slices.Sorted(maps.Keys(intervals)), one), ",")
}

func parseIntervals(text string) map[string]time.Duration {
	intervals := make(map[string]time.Duration)
	for _, one := range sqldb.SplitList(text) {
		typ, ms, _ := strings.Cut(one, "=")
		if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
			intervals[typ] = time.Duration(n) * time.Millisecond
		}
	}
	return intervals
}

// Leave removes the node from the live nodes, at a graceful stop. Its sinks count as
// fed now: the node's row has told the janitors of other nodes to keep their events,
// and a sink that no node could feed for long, or that had nothing to store, would
// lose its offsets as soon as the row has gone.
func (t *Nodes) Leave(ctx context.Context, bootID string) error {
	return t.db.InTx(ctx, "take this node out", func(tx *sql.Tx) error {
		var sinks string
		err := tx.QueryRowContext(ctx, t.sql.SQL().Node.Leave, bootID).Scan(&sinks)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// In order, so that two nodes that leave cannot deadlock.
		for _, sink := range slices.Sorted(slices.Values(sqldb.SplitList(sinks))) {
			_, err := tx.ExecContext(ctx, t.sql.SQL().Node.KeepSink, sink)
			if err != nil {
				return fmt.Errorf("keep what sink %s needs: %w", sink, err)
			}
		}
		return nil
	})
}
