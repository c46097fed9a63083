package liveness

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/wait"
)

// absence is the default of [Options].Absence.
const absence = time.Second

// aliveness reports of a boot id whether its process is there; known is false
// where that cannot be said.
type aliveness func(bootID string) (alive, known bool)

// Rows visits each row of a query's result.
type Rows func(ctx context.Context, text string, visit func(scan sqldb.Scan) error, args ...any) error

// Dead finds the dead nodes without being a node, as a command does, and reads with rows. It
// judges as a node would: it returns the boot ids of the nodes that were absent in both of two
// looks and gave no sign of life in between. A session that broke comes back sooner.
func Dead(ctx context.Context, db *sqldb.DB, rows Rows) (dead map[string]bool, err error) {
	j := detector{absence: absence, gap: time.Minute}
	for look := range 2 {
		if look > 0 && !wait.For(ctx, absence) {
			return nil, fmt.Errorf("look who is alive: %w", context.Cause(ctx))
		}
		began := time.Now()
		absent, err := absentees(ctx, db, rows)
		if err != nil || len(absent) == 0 {
			return nil, err
		}
		dead = j.look(began, time.Now(), absent)
	}
	return dead, nil
}

// absentees returns the nodes that can be judged and are not there, by boot id, with
// what changes with every sign of life.
func absentees(ctx context.Context, db *sqldb.DB, rows Rows) (map[string]string, error) {
	var nodes []sign
	texts := newPresenceSQL(db).SQL()
	err := rows(ctx, texts.Absent, func(scan sqldb.Scan) error {
		var n sign
		err := scan(&n.boot, &n.liveness, &n.touched)
		nodes = append(nodes, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind, alive := ByFlock, (&filePresence{prefix: filePrefix(db)}).alive
	if db.Backend() != "sqlite" {
		kind = BySession
		if alive, err = sessionsPresent(ctx, rows, texts.Present); err != nil {
			return nil, err
		}
	}
	absent := make(map[string]string)
	for _, n := range nodes {
		if n.liveness != kind {
			continue
		}
		if there, known := alive(n.boot); known && !there {
			absent[n.boot] = n.touched
		}
	}
	return absent, nil
}
