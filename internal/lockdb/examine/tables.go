package examine

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// schema compares the version of the schema with the binary's.
func (x *examiner) schema(ctx context.Context) (err error) {
	v := &x.found.Schema
	v.Current, v.Target, err = x.db.SchemaVersion(ctx)
	return err
}

// recent is how long a node is listed after it was last seen.
const recent = time.Minute

// migrated reports whether our tables are there.
func (x *examiner) migrated() bool { return x.found.Schema.Current > 0 }

// acquisitions reads what our nodes noted when they last took each lock.
func (x *examiner) acquisitions(ctx context.Context) error {
	if !x.migrated() {
		return nil
	}
	return x.visit(ctx, x.sql.SQL().Acquisitions,
		func(scan func(...any) error) error {
			var a status.Acquisition
			var ttl int64
			err := scan(&a.Key, &a.Region, &a.Name, &a.Node, &ttl, sqldb.ScanTime(&a.At))
			a.Key, a.TTL = sqldb.Unpadded(a.Key), time.Duration(ttl)*time.Millisecond
			x.found.Acquired = append(x.found.Acquired, a)
			return err
		})
}

func (x *examiner) members(ctx context.Context) error {
	if !x.migrated() {
		return nil
	}
	dead, err := liveness.NewOnlooker(x.db.DB, x.rows).Dead(ctx)
	if err != nil {
		return err
	}
	return x.visit(ctx, x.sql.SQL().Members,
		func(scan func(...any) error) error {
			var m status.Member
			var types, unreachable, sinks, shown string
			err := scan(&m.BootID, &m.Name, &m.Version, &m.ConfigHash, &types, &unreachable, &sinks,
				sqldb.ScanTime(&m.StartedAt), sqldb.ScanTime(&m.SeenAt), &shown)
			m.Hidden = shown == ""
			m.Gone = dead[m.BootID]
			m.Types, m.Unreachable, m.Sinks = sqldb.SplitList(types), sqldb.SplitList(unreachable), sqldb.SplitList(sinks)
			x.found.Members = append(x.found.Members, m)
			return err
		}, recent.Seconds())
}

func (x *examiner) turns(ctx context.Context) error {
	if !x.migrated() {
		return nil
	}
	return x.visit(ctx, x.sql.SQL().Turns,
		func(scan func(...any) error) error {
			var t status.Type
			err := scan(&t.Name, sqldb.ScanTime(&t.TurnAt), &t.LastNode, &t.LastOutcome)
			x.found.Turns = append(x.found.Turns, t)
			return err
		})
}

// beyond reads the offsets that lie above the end of their stream.
func (x *examiner) beyond(ctx context.Context) error {
	if !x.migrated() {
		return nil
	}
	return x.visit(ctx, x.sql.SQL().Beyond, func(scan func(...any) error) error {
		var s status.Sink
		err := scan(&s.Sink, &s.Stream, &s.Offset, &s.Last)
		x.found.Beyond = append(x.found.Beyond, s)
		return err
	})
}

// pauses reads which observers are paused, by the clock of the database.
func (x *examiner) pauses(ctx context.Context) error {
	if !x.migrated() {
		return nil
	}
	return x.visit(ctx, x.sql.SQL().Pauses, func(scan func(...any) error) error {
		o := status.Observer{State: status.StatePaused, Pause: &status.Pause{}}
		err := scan(&o.ID, sqldb.ScanTime(&o.Pause.At), sqldb.ScanTime(&o.Pause.Until), &o.Pause.By, &o.Pause.Reason)
		x.found.Paused = append(x.found.Paused, o)
		return err
	})
}
