package lockdb

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb/eventlog"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

const (
	// recent is how long a node is listed after it was last seen.
	recent = time.Minute
	// lastPolls is how many polls are listed.
	lastPolls = 10
	// mostLocks is how many locks are listed.
	mostLocks = 200
	// mostSummed is how many locks are counted by subject and mode: more take longer than a
	// page may.
	mostSummed = 1_000
	// lastBack is how many streams are listed that went back, and recentBack for how
	// long.
	lastBack = 20
	// recentPolls is the time whose polls are summed up.
	recentPolls = 10 * time.Minute
	recentBack  = 7 * 24 * time.Hour
)

// Report describes the cluster. Its parts are read one after the other, not in
// one snapshot.
// Of the locks, those in the regions of the pollers come first.
func (db *DB) Report(ctx context.Context, regions []string) (status.Report, error) {
	r := reporter{db: db, regions: regions, Report: status.Report{Backend: db.Backend()}}
	var err error
	if r.At, err = db.Now(ctx); err != nil {
		return r.Report, err
	}
	for _, part := range []func(context.Context) error{
		r.nodes, r.types, r.sweeps, r.observers, r.recent, r.sinks, r.parked, r.locks, r.polls, r.generations, r.accounts, r.wentBack,
	} {
		if err := part(ctx); err != nil {
			return r.Report, err
		}
	}
	return r.Report, nil
}

// reporter gathers a report.
type reporter struct {
	db      *DB
	regions []string
	status.Report
}

func (r *reporter) nodes(ctx context.Context) error {
	nodes, err := r.db.Nodes().Nodes(ctx, recent)
	if err != nil {
		return err
	}
	dead, err := r.db.deadNodes(ctx)
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, status.Node{
			Name: n.Name, BootID: n.BootID, Version: n.Version, ConfigHash: n.ConfigHash,
			Types: n.Types, Intervals: n.Intervals, Unreachable: n.Unreachable, Outdated: n.Outdated, StartedAt: n.StartedAt, SeenAt: n.SeenAt,
			Gone: dead[n.BootID],
		})
	}
	return err
}

func (r *reporter) types(ctx context.Context) (err error) {
	r.Types, err = sqldb.All(ctx, r.db.db, "read the turns", r.db.sql.SQL().Turn.All, func(scan sqldb.Scan, t *status.Type) error {
		var started time.Time
		err := scan(&t.Name, sqldb.ScanTime(&t.TurnAt), sqldb.ScanTime(&started), sqldb.ScanTime(&t.FinishedAt), &t.LastNode, &t.LastOutcome)
		t.LastDuration = t.FinishedAt.Sub(started)
		return err
	})
	return err
}

func (r *reporter) observers(ctx context.Context) error {
	streams, err := r.db.Streams().Statuses(ctx)
	for _, s := range streams {
		o := status.Observer{
			ID: s.Stream, State: s.state(r.At), TurnAt: s.TurnAt, LastOKAt: s.LastOK, RetryAt: s.RetryAt, Failures: s.Failures,
			LastError: s.LastError, Refusal: r.refusal(s), Events: s.LastSeq, Live: s.Live, Gone: s.Gone, Dead: s.Dead, DeadSince: s.DeadSince, Complete: s.Complete, Lag: s.Lag, LowWater: s.Low, Newest: s.Newest,
		}
		if s.Paused {
			o.Pause = &s.Pause
		}
		r.Observers = append(r.Observers, o)
	}
	return err
}

// refusal words what an observer has refused. That of a sweep ends with the sweep.
func (r *reporter) refusal(s StreamStatus) string {
	refusal, _ := observer.DecodeRefusal(s.Refusal) // One that cannot be read is the error of the next poll.
	ofSweep := func(w status.Sweep) bool { return w.Observer == s.Stream && w.Kind == string(refusal.Sweep) }
	if refusal.Sweep != "" && !slices.ContainsFunc(r.Sweeps, ofSweep) {
		return ""
	}
	return refusal.Text
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

// recent sums up the polls of each observer that have ended a short time ago.
func (r *reporter) recent(ctx context.Context) error {
	sums := make(map[string]status.Recent)
	err := r.db.db.Query(ctx, "sum up the last polls", r.db.sql.SQL().Report.Recent,
		func(scan func(...any) error) error {
			var stream string
			var s status.Recent
			err := scan(&stream, &s.Polls, &s.Failed, &s.Rows, &s.Events, &s.Poison)
			sums[stream] = s
			return err
		}, recentPolls.Seconds(), string(turn.OK))
	for i, o := range r.Observers {
		r.Observers[i].Recent = sums[o.ID]
		r.Observers[i].Recent.Span = recentPolls
	}
	return err
}

func (r *reporter) sinks(ctx context.Context) (err error) {
	r.Sinks, err = r.db.Log().Offsets(ctx, r.At)
	return err
}

func (r *reporter) parked(ctx context.Context) (err error) {
	r.Parked, err = sqldb.All(ctx, r.db.db, "sum up the parked events", r.db.sql.SQL().Report.Parked,
		func(scan sqldb.Scan, p *status.Parked) error {
			return scan(&p.Sink, &p.Events, sqldb.ScanTime(&p.Since))
		})
	return err
}

func (r *reporter) locks(ctx context.Context) error {
	locks, total, err := r.db.Leases().Locks(ctx, r.regions, mostSummed)
	kinds := make(map[[2]string]status.LockKind)
	for i, one := range locks {
		if i < mostLocks {
			r.Locks = append(r.Locks, one)
		}
		k, known := kinds[[2]string{one.Subject, one.Mode}]
		if !known {
			k = status.LockKind{Subject: one.Subject, Mode: one.Mode, Oldest: one}
		}
		k.Locks++
		k.Waiting += one.Waiting
		if one.AcquiredAt.Before(k.Oldest.AcquiredAt) {
			k.Oldest = one
		}
		kinds[[2]string{one.Subject, one.Mode}] = k
	}
	r.MoreLocks = total - int64(len(r.Locks))
	r.LockKinds = slices.SortedFunc(maps.Values(kinds), func(a, b status.LockKind) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Mode, b.Mode))
	})
	return err
}

func (r *reporter) polls(ctx context.Context) (err error) {
	r.Polls, err = r.db.Polls(ctx, "", lastPolls)
	return err
}

// Polls returns the last polls, newest first: of an observer, or of all where id is empty.
func (db *DB) Polls(ctx context.Context, id string, limit int) ([]status.Poll, error) {
	text, args := db.sql.SQL().Turn.Polls, []any{limit}
	if id != "" {
		text, args = db.sql.SQL().Turn.PollsOf, append(args, id)
	}
	return sqldb.All(ctx, db.db, "read the history of polls", text, func(scan sqldb.Scan, p *status.Poll) error {
		var typ string
		var turnAt, finished time.Time
		err := scan(&typ, &p.Observer, &p.Node, sqldb.ScanTime(&turnAt), sqldb.ScanTime(&p.StartedAt), sqldb.ScanTime(&finished),
			&p.Outcome, &p.Reason, &p.Rows, &p.Events, &p.Poison)
		p.Duration = finished.Sub(p.StartedAt)
		return err
	}, args...)
}

func (r *reporter) sweeps(ctx context.Context) error {
	sweeps, err := r.db.Sweeps().Latest(ctx, "")
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

// generations leaves out how far other observers are with rows that have no
// timestamp.
func (r *reporter) generations(ctx context.Context) (err error) {
	r.Generations, err = sqldb.All(ctx, r.db.db, "read how far readings of all rows have come", r.db.sql.SQL().Report.Generations,
		func(scan sqldb.Scan, g *status.Generation) error {
			var took int64
			err := scan(&g.Observer, &g.Rows, &g.Of, sqldb.ScanTime(&g.StartedAt), sqldb.ScanTime(&g.FinishedAt), &took)
			g.Took = time.Duration(took) * time.Millisecond
			return err
		})
	return err
}

func (r *reporter) accounts(ctx context.Context) (err error) {
	r.Accounts, err = sqldb.All(ctx, r.db.db, "read the refused accounts", r.db.sql.SQL().Account.All, func(scan sqldb.Scan, a *status.Account) error {
		var salt, digest []byte
		return scan(&a.ID, &a.Node, &a.Reason, &salt, &digest, sqldb.ScanTime(&a.Since))
	})
	return err
}

func (r *reporter) wentBack(ctx context.Context) (err error) {
	r.WentBack, err = sqldb.All(ctx, r.db.db, "read which streams went back", r.db.sql.SQL().Report.WentBack,
		func(scan sqldb.Scan, b *status.WentBack) error {
			return scan(sqldb.ScanTime(&b.At), &b.Node, &b.Observer, &b.Detail)
		}, eventlog.ActWentBack, recentBack.Seconds(), lastBack)
	return err
}
