package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/status"
)

const (
	// recent is how long a node is listed after it was last seen.
	recent = time.Minute
	// lastPolls is how many polls are listed.
	lastPolls = 10
	// lastBack is how many streams are listed that went back, and recentBack for how
	// long.
	lastBack   = 20
	recentBack = 7 * 24 * time.Hour
)

// Report describes the cluster. Its parts are read one after the other, not in
// one snapshot.
func (db *DB) Report(ctx context.Context) (status.Report, error) {
	r := status.Report{Backend: db.backend}
	var err error
	if r.At, err = db.Now(ctx); err != nil {
		return r, err
	}
	for _, part := range []func(context.Context, *status.Report) error{
		db.reportNodes, db.reportTypes, db.reportObservers, db.reportSinks, db.reportLocks, db.reportPolls,
		db.reportSweeps, db.reportGenerations, db.reportAccounts, db.reportWentBack,
	} {
		if err := part(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (db *DB) reportNodes(ctx context.Context, r *status.Report) error {
	nodes, err := db.Nodes(ctx, recent)
	if err != nil {
		return err
	}
	dead, err := db.deadNodes(ctx)
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, status.Node{
			Name: n.Name, BootID: n.BootID, Version: n.Version, ConfigHash: n.ConfigHash,
			Types: n.Types, Unreachable: n.Unreachable, Outdated: n.Outdated, StartedAt: n.StartedAt, SeenAt: n.SeenAt,
			Gone: dead[n.BootID],
		})
	}
	return err
}

func (db *DB) reportTypes(ctx context.Context, r *status.Report) error {
	turns, err := db.Turns(ctx)
	for _, t := range turns {
		r.Types = append(r.Types, status.Type{
			Name: t.Type, TurnAt: t.At, LastNode: t.Node, LastOutcome: string(t.Outcome), LastDuration: t.Finished.Sub(t.Started),
		})
	}
	return err
}

func (db *DB) reportObservers(ctx context.Context, r *status.Report) error {
	streams, err := db.StreamStatuses(ctx)
	for _, s := range streams {
		r.Observers = append(r.Observers, status.Observer{
			ID: s.Stream, State: s.state(r.At), TurnAt: s.TurnAt, LastOKAt: s.LastOK, RetryAt: s.RetryAt, Failures: s.Failures,
			LastError: s.LastError, Events: s.LastSeq, Live: s.Live, Dead: s.Dead, Lag: s.Lag, LowWater: s.Low, Newest: s.Newest,
		})
	}
	return err
}

func (s StreamStatus) state(now time.Time) string {
	switch {
	case s.Paused:
		return status.StatePaused
	case s.RetryAt.After(now):
		return status.StateBackoff
	}
	return status.StateActive
}

func (db *DB) reportSinks(ctx context.Context, r *status.Report) error {
	offsets, err := db.Log().Offsets(ctx)
	for _, o := range offsets {
		s := status.Sink{Sink: o.Sink, Stream: o.Stream, Offset: o.Acknowledged, Last: o.Last}
		if !o.Oldest.IsZero() {
			s.Lag = r.At.Sub(o.Oldest)
		}
		r.Sinks = append(r.Sinks, s)
	}
	return err
}

func (db *DB) reportLocks(ctx context.Context, r *status.Report) error {
	locks, err := db.Locks(ctx)
	for _, l := range locks {
		r.Locks = append(r.Locks, status.Lock{
			Key: l.Key, Region: l.Region, Holder: l.Node, Name: l.Name, Fence: l.Fence, Term: l.Term, Left: l.Left, Ahead: l.Ahead,
		})
	}
	return err
}

func (db *DB) reportPolls(ctx context.Context, r *status.Report) error {
	polls, err := db.Polls(ctx, lastPolls)
	for _, p := range polls {
		r.Polls = append(r.Polls, status.Poll{
			Observer: p.Stream, Node: p.Node, StartedAt: p.Started, Duration: p.Finished.Sub(p.Started),
			Outcome: string(p.Outcome), Reason: p.Reason, Rows: p.Rows, Events: p.Events, Poison: p.Poison,
		})
	}
	return err
}

func (db *DB) reportSweeps(ctx context.Context, r *status.Report) error {
	sweeps, err := db.Sweeps(ctx, "")
	for _, s := range sweeps {
		if s.State != observer.SweepRunning {
			continue
		}
		r.Sweeps = append(r.Sweeps, status.Sweep{
			ID: s.ID, Observer: s.Stream, Kind: string(s.Kind), From: s.From, Before: s.Before, Position: s.Position,
			Rows: s.Rows, Events: s.Events, StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt,
		})
	}
	return err
}

// reportGenerations leaves out how far other observers are with rows that have no
// timestamp.
func (db *DB) reportGenerations(ctx context.Context, r *status.Report) error {
	return db.query(ctx, "read how far readings of all rows have come", `
		SELECT c.stream, g.row_count, c.live_count, g.started_at, g.finished_at, g.took_ms
		  FROM obs_generation g
		  JOIN obs_cursor c ON c.stream_id = g.stream_id
		 WHERE g.reading NOT LIKE 'apart %'
		 ORDER BY c.stream`,
		func(scan func(...any) error) error {
			var g status.Generation
			var took int64
			err := scan(&g.Observer, &g.Rows, &g.Of, instant{&g.StartedAt}, instant{&g.FinishedAt}, &took)
			g.Took = time.Duration(took) * time.Millisecond
			r.Generations = append(r.Generations, g)
			return err
		})
}

func (db *DB) reportAccounts(ctx context.Context, r *status.Report) error {
	accounts, err := db.accounts(ctx, "")
	for _, a := range accounts {
		r.Accounts = append(r.Accounts, status.Account{
			ID: a.ID, Since: a.RefusedAt, Until: a.RetryAt, Failures: a.Failures, Node: a.Node, Reason: a.Reason,
			Never: a.GivenUp(),
		})
	}
	return err
}

func (db *DB) reportWentBack(ctx context.Context, r *status.Report) error {
	return db.query(ctx, "read which streams went back", `
		SELECT at, actor, subject, detail
		  FROM obs_audit
		 WHERE action = $1 AND at >= {ago $2}
		 ORDER BY id DESC
		 LIMIT $3`,
		func(scan func(...any) error) error {
			var b status.WentBack
			err := scan(instant{&b.At}, &b.Node, &b.Observer, &b.Detail)
			r.WentBack = append(r.WentBack, b)
			return err
		}, actWentBack, recentBack.Seconds(), lastBack)
}
