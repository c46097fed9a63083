package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// margin covers the moment between a transaction's fixing its time and its showing
// that time to others.
const margin = time.Second

// horizonSQL takes the clock from the beginning of the statement, before it
// looks at the sessions: a transaction that it does not see began after that.
// Times are microseconds since 1970.
//
// Waited for are all sessions that may write: clients and background workers, which show
// the type that their extension gave them, such as "pg_cron" or "logical
// replication worker". So those are named who never write, or do so for a
// leader that is shown as well; our own sessions never write either. What counts
// as hidden: a session of a role that we may not look at, or one in which
// track_activities is off. A client without a state has only started: it says
// one, if only 'disabled', before it can begin a transaction. Two-phase
// transactions began before they show up.
//
// A background worker that ends has no type at times, and counts; a session that
// is hidden has nothing but its name.
const horizonSQL = `
SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
       (extract(epoch FROM min(a.xact_start)
          FILTER (WHERE a.may_write AND coalesce(a.application_name, '') NOT LIKE $1 || '%')) * 1000000)::bigint,
       count(*) FILTER (WHERE a.backend_type IS NULL AND a.backend_start IS NULL),
       count(*) FILTER (WHERE a.may_write AND a.state = 'disabled'),
       (SELECT (extract(epoch FROM min(p.prepared)) * 1000000)::bigint
          FROM pg_prepared_xacts p WHERE p.database = current_database()),
       (extract(epoch FROM max(a.xact_start)) * 1000000)::bigint,
       pg_is_in_recovery(),
       (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000000)::bigint,
       current_setting('track_activities')
FROM (SELECT *, coalesce(backend_type, '') NOT IN ('autovacuum launcher', 'autovacuum worker', 'walsender', 'parallel worker') AS may_write
        FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()) a`

// activity is what the server says of its open transactions.
type activity struct {
	now              time.Time
	oldest           time.Time // zero when no transaction is open
	youngest         time.Time
	hidden, untraced int64
	prepared         time.Time // zero without two-phase transactions
	replica          bool
	replayed         time.Time // of a replica; zero when nothing was replayed
	tracking         bool
	// others bring rows whose transactions are not among these.
	others others
}

// Horizon implements [observer.Source]. It is exact where every session of the
// database can be seen, and no others bring what is read, see others. Otherwise,
// on a replica, and where track_activities is off, it is the clock less the
// overlap, on a replica less its delay as well. Transactions that can be seen
// are waited for all the same, but on a replica, where no session writes.
//
// A prepared (two-phase) transaction has a time of preparation, but none of its
// start, so the horizon then is empty, the cursor before all others: the
// low-water mark stays where it was when that transaction was still visible.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	return inSession(ctx, s, func(c *session) (observer.Horizon, error) {
		p, err := c.plan(ctx, q, observer.Range{})
		if err != nil || p.selection.Timestamp < 0 {
			return observer.Horizon{}, err
		}
		a, err := c.activity(ctx, p.relation, p.steps)
		if err != nil {
			return observer.Horizon{}, err
		}
		h := a.horizon(q.Overlap, p.time, s.options.Location)
		h.Clock, h.Now = p.time.Horizon(a.now, s.options.Location), a.now
		h.Undated = source.HasUndated(q, p.selection)
		return h, nil
	})
}

func (c *session) activity(ctx context.Context, of relation, steps []step) (activity, error) {
	operation := "read open transactions"
	var questions []question
	if !of.alone() {
		operation += " and look through the query"
		questions = planReads(steps)
	}
	last := len(questions)
	answers, err := c.ask(ctx, operation, append(questions, sessionsQuestion(horizonSQL))...)
	if err != nil {
		return activity{}, err
	}
	found, err := of.reads(answers[:last])
	if err != nil {
		return activity{}, err
	}
	return activityOf(answers[last].rows, found)
}

func sessionsQuestion(sql string) question {
	return question{sql: sql, params: [][]byte{[]byte(sessionPrefix)}, fixed: true}
}

func activityOf(rows [][][]byte, found reads) (activity, error) {
	if len(rows) != 1 || rows[0][0] == nil {
		return activity{}, fmt.Errorf("read open transactions: %d rows where one is expected", len(rows))
	}
	r := rows[0]
	return activity{
		now:      instant(r[0]),
		oldest:   instant(r[1]),
		hidden:   count(r[2]),
		untraced: count(r[3]),
		prepared: instant(r[4]),
		youngest: instant(r[5]),
		replica:  string(r[6]) == "t",
		replayed: instant(r[7]),
		tracking: string(r[8]) == "on",
		others:   othersOf(found),
	}, nil
}

func instant(text []byte) time.Time {
	if text == nil {
		return time.Time{}
	}
	return time.UnixMicro(count(text)).UTC()
}

func count(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 1 // Unreadable is not "none": the horizon is not exact then.
	}
	return n
}

// exact reports whether every open transaction was seen that may write what is
// read.
func (a activity) exact() bool {
	return a.hidden == 0 && a.untraced == 0 && a.tracking && !a.replica && a.others == others{}
}

// held reports whether something is open, or not yet replayed, and
// does not show when it began. A transaction that began later than now was open when
// the clock went back, and may have written at any time since then.
func (a activity) held() bool {
	return !a.prepared.IsZero() || a.youngest.Sub(a.now) > margin || a.replica && a.replayed.IsZero()
}

func (a activity) horizon(overlap time.Duration, k timeKind, loc *time.Location) observer.Horizon {
	exact := a.exact()
	clock, oldest := a.now, a.oldest
	if !exact {
		clock, overlap = source.Earlier(a.now, a.delay()), source.ClockOverlap(overlap)
	}
	if a.replica {
		oldest = time.Time{} // No session writes here.
	}
	at, earliest := source.OpenSince(clock, oldest, margin, overlap)
	if a.held() {
		return observer.Horizon{Lag: a.now.Sub(source.Earlier(at, a.prepared)), Exact: exact}
	}
	return observer.Horizon{Cursor: k.Horizon(at, loc), Earliest: k.Horizon(earliest, loc), Lag: a.now.Sub(at), Exact: exact}
}

// delay is the instant up to which a replica has caught up; zero elsewhere.
func (a activity) delay() time.Time {
	if a.replica {
		return a.replayed
	}
	return time.Time{}
}

// warnings says why the horizon is not exact, and what would make it so.
func (a activity) warnings() []string {
	var w []string
	if a.hidden > 0 {
		w = append(w, "Sessions of other roles are hidden, so the horizon is the clock less the overlap. GRANT pg_read_all_stats to the role that reads.")
	}
	if !a.tracking || a.untraced > 0 {
		w = append(w, "track_activities is off, so open transactions cannot be seen and the horizon is the clock less the overlap.")
	}
	if a.replica {
		w = append(w, "This is a replica, which does not know the open transactions of its primary: the horizon is what was replayed, less the overlap.")
	}
	w = append(w, a.others.warnings()...)
	if !a.prepared.IsZero() {
		w = append(w, "A prepared (two-phase) transaction is open; the low-water mark does not move until it ends.")
	}
	return w
}
