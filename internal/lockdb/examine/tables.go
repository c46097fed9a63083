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
	return collect(ctx, x, x.sql.SQL().Acquisitions, &x.found.Acquired,
		func(scan sqldb.Scan, a *status.Acquisition) error {
			var ttl int64
			err := scan(&a.Key, &a.Region, &a.Name, &a.Node, &ttl, sqldb.ScanTime(&a.At))
			a.Key, a.TTL = sqldb.Unpadded(a.Key), time.Duration(ttl)*time.Millisecond
			return err
		})
}

func (x *examiner) members(ctx context.Context) error {
	dead, err := liveness.Dead(ctx, x.db.DB, x.visit)
	if err != nil {
		return err
	}
	return collect(ctx, x, x.sql.SQL().Members, &x.found.Members,
		func(scan sqldb.Scan, m *status.Member) error {
			var types, unreachable, sinks, shown string
			err := scan(&m.BootID, &m.Name, &m.Version, &m.ConfigHash, &types, &unreachable, &sinks,
				sqldb.ScanTime(&m.StartedAt), sqldb.ScanTime(&m.SeenAt), &shown)
			m.Hidden = shown == ""
			m.Gone = dead[m.BootID]
			m.Types, m.Unreachable, m.Sinks = sqldb.SplitList(types), sqldb.SplitList(unreachable), sqldb.SplitList(sinks)
			return err
		}, recent.Seconds())
}

func (x *examiner) turns(ctx context.Context) error {
	return collect(ctx, x, x.sql.SQL().Turns, &x.found.Turns, func(scan sqldb.Scan, t *status.Type) error {
		return scan(&t.Name, sqldb.ScanTime(&t.TurnAt), &t.LastNode, &t.LastOutcome)
	})
}

// beyond reads the offsets that lie above the end of their stream.
func (x *examiner) beyond(ctx context.Context) error {
	return collect(ctx, x, x.sql.SQL().Beyond, &x.found.Beyond, func(scan sqldb.Scan, s *status.Sink) error {
		return scan(&s.Sink, &s.Stream, &s.Offset, &s.Last)
	})
}

// pauses reads which observers are paused, by the clock of the database.
func (x *examiner) pauses(ctx context.Context) error {
	return collect(ctx, x, x.sql.SQL().Pauses, &x.found.Paused, func(scan sqldb.Scan, o *status.Observer) error {
		o.State, o.Pause = status.StatePaused, &status.Pause{}
		return scan(&o.ID, sqldb.ScanTime(&o.Pause.At), sqldb.ScanTime(&o.Pause.Until), &o.Pause.By, &o.Pause.Reason)
	})
}

// poison reads which observers have poison rows.
func (x *examiner) poison(ctx context.Context) error {
	return x.visit(ctx, x.sql.SQL().Poison, func(scan sqldb.Scan) error {
		var p status.PoisonRows
		err := scan(&p.Observer, &p.Reason, &p.Rows, &p.Only)
		if n := len(x.found.Poison); n > 0 && x.found.Poison[n-1].Observer == p.Observer {
			x.found.Poison[n-1].Rows += p.Rows
		} else {
			x.found.Poison = append(x.found.Poison, p)
		}
		return err
	})
}
