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
type Rows func(ctx context.Context, text string, visit func(scan func(...any) error) error) error

// Onlooker finds the dead nodes without being a node, as a command does. It judges as
// a node would, by two looks.
type Onlooker struct {
	// kind is the value of the columns liveness of nodes that can be judged.
	kind   string
	sql    *presenceSQL
	rows   Rows
	others func(ctx context.Context) (aliveness, error)
}

// NewOnlooker returns an onlooker that reads with rows.
func NewOnlooker(db *sqldb.DB, rows Rows) Onlooker {
	texts := newPresenceSQL(db).SQL()
	if db.Backend() == "sqlite" {
		p := &filePresence{prefix: filePrefix(db)}
		return Onlooker{ByFlock, texts, rows, func(context.Context) (aliveness, error) { return p.alive, nil }}
	}
	return Onlooker{BySession, texts, rows, func(ctx context.Context) (aliveness, error) { return sessionsPresent(ctx, rows, texts.Present) }}
}

// Dead returns the boot ids of the nodes that were absent in both of two looks
// and gave no sign of life in between: a session that broke comes back sooner.
func (o Onlooker) Dead(ctx context.Context) (dead map[string]bool, err error) {
	j := detector{absence: absence, gap: time.Minute}
	for look := range 2 {
		if look > 0 && !wait.For(ctx, absence) {
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
func (o Onlooker) absent(ctx context.Context) (map[string]string, error) {
	var nodes []nodeSeen
	err := o.rows(ctx, o.sql.Absent,
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
