package lockdb

import (
	"context"
	"fmt"
	"time"
)

// absence is the default of [LivenessOptions].Absence.
const absence = time.Second

// aliveness tells of a boot id whether its process is there; known is false
// where that cannot be said.
type aliveness func(bootID string) (alive, known bool)

// rowsOf visits each row of a query's result.
type rowsOf func(ctx context.Context, text string, visit func(scan func(...any) error) error) error

// onlooker sees who is dead without being a node, as a command does. It judges as
// a node would, by two looks.
type onlooker struct {
	// kind is the value of the columns liveness of those whom others can tell of.
	kind   string
	rows   rowsOf
	others func(ctx context.Context) (aliveness, error)
}

// deadNodes returns the boot ids of the nodes whose processes are gone. A process
// that watches the others knows; every other has a look, which takes as long as a
// node must be absent if one is.
func (db *DB) deadNodes(ctx context.Context) (map[string]bool, error) {
	if db.liveness != nil {
		if dead, watching := db.liveness.news.dead(); watching {
			return dead, nil
		}
	}
	p := db.newPresence()
	return onlooker{kind: p.kind(), rows: db.seen, others: p.others}.dead(ctx)
}

// seen is the [rowsOf] of this database.
func (db *DB) seen(ctx context.Context, text string, visit func(scan func(...any) error) error) error {
	return db.query(ctx, "look who is alive", text, visit)
}

// dead returns the boot ids of the nodes that were absent in both of two looks
// and gave no sign of life in between: a session that broke comes back sooner.
func (o onlooker) dead(ctx context.Context) (dead map[string]bool, err error) {
	j := judge{absence: absence, gap: time.Minute}
	for look := range 2 {
		if look > 0 && !pause(ctx, absence) {
			return nil, fmt.Errorf("look who is alive: %w", context.Cause(ctx))
		}
		began := time.Now()
		absent, err := o.absent(ctx)
		if err != nil || len(absent) == 0 {
			return nil, err
		}
		dead = j.look(began, time.Now(), absent)
	}
	return dead, nil
}

// absent returns the nodes that can be judged and are not there, by boot id, with
// what changes with every sign of life.
func (o onlooker) absent(ctx context.Context) (map[string]string, error) {
	var nodes []nodeSeen
	err := o.rows(ctx, `
		SELECT boot_id, liveness, CAST(seen_at AS TEXT) FROM obs_node WHERE seen_at >= {ago `+recentNodes+`}`,
		func(scan func(...any) error) error {
			var n nodeSeen
			err := scan(&n.boot, &n.liveness, &n.touched)
			nodes = append(nodes, n)
			return err
		})
	if err != nil {
		return nil, err
	}
	alive, err := o.others(ctx)
	if err != nil {
		return nil, err
	}
	absent := make(map[string]string)
	for _, n := range nodes {
		if n.liveness != o.kind {
			continue
		}
		if there, known := alive(n.boot); known && !there {
			absent[n.boot] = n.touched
		}
	}
	return absent, nil
}
