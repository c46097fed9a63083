package oracle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	// margin covers what the start of a transaction does not tell: it is noted
	// in whole seconds, by its first change, while SYSDATE was fixed when the
	// statement of that change began, which may have searched for a while first.
	// Statements that search for longer before they write need an overlap.
	margin = 5 * time.Second
	// clockSlack is how far SYSDATE and SYSTIMESTAMP, of which one has no
	// fraction, may be apart from a whole quarter of an hour.
	clockSlack = 2 * time.Second
)

// clockSQL reads the clock, before anything else, in UTC and as the host of the
// database shows it, which is how the starts of transactions are noted, and the identity.
const clockSQL = `SELECT TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6'),
       TO_CHAR(SYSDATE, 'YYYY-MM-DD HH24:MI:SS'),
       SYS_CONTEXT('USERENV', 'DATABASE_ROLE'),
       %s,
       %s
FROM DUAL%s`

const startsSQL = `(SELECT TO_CHAR(MIN(t.START_DATE), 'YYYY-MM-DD HH24:MI:SS') FROM %[1]s t),
       (SELECT TO_CHAR(MAX(t.START_DATE), 'YYYY-MM-DD HH24:MI:SS') FROM %[1]s t)`

// applySQL is how far a standby is behind, as "+00 00:00:12".
const applySQL = "SELECT s.VALUE FROM V$DATAGUARD_STATS s WHERE s.NAME = 'apply lag'"

// activity is what the database says of its clock and its open transactions.
type activity struct {
	grants
	identity string
	now      time.Time
	host     time.Time // the same moment by the host's clock, as a time in UTC
	oldest   time.Time // by the host's clock; zero when nothing is open
	youngest time.Time // likewise
	role     string
	applied  time.Duration // by which a standby is behind
	reported bool          // that it says so
	others   others        // what may bring rows whose transactions are not among these
}

// Horizon implements [observer.Source]. It is exact where GV$TRANSACTION (or
// V$TRANSACTION of a database with a single instance) is granted and shows a
// transaction of our own, on a primary database whose host's clock makes sense,
// for a table or a synonym of one, which is neither behind a database link nor a
// materialized view: see [others]. Elsewhere it is the clock less the overlap, or
// the start of an older transaction that is shown, on a standby less its delay as
// well; it is empty, the cursor before all others, on a standby whose delay is
// hidden.
//
// A transaction that a crash has left in doubt (DBA_2PC_PENDING) is in no such
// view; what it wrote is found by a reconcile sweep.
//
// The clock is SYSTIMESTAMP in UTC. Transactions are noted by the host's clock,
// whose zone shows in its distance from that; see [activity.started].
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	p, err := s.timed(ctx, q)
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	a, err := s.activity(ctx, p.relation)
	if err != nil {
		return observer.Horizon{}, err
	}
	h := a.horizon(q.Overlap, p.time, s.options.Location)
	h.Clock, h.Now = p.time.Horizon(a.now, s.options.Location), a.now
	h.Identity, h.Undated = a.identity, source.HasUndated(q, p.selection)
	return h, nil
}

func (s *Source) activity(ctx context.Context, of relation) (activity, error) {
	a, err := s.readActivity(ctx)
	if ungranted(err) { // a grant was revoked
		s.grants.Store(nil)
		a, err = s.readActivity(ctx)
	}
	a.others = of.others
	return a, err
}

func (s *Source) readActivity(ctx context.Context) (activity, error) {
	g, err := s.granted(ctx)
	if err != nil {
		return activity{}, err
	}
	return inSession(ctx, s, func(c *session) (activity, error) { return c.activity(ctx, g) })
}

func (c *session) activity(ctx context.Context, g grants) (activity, error) {
	a, err := c.clock(ctx, g)
	if err != nil || !a.replica() {
		return a, err
	}
	rows, err := c.rows(ctx, "read the delay of the standby", applySQL)
	switch {
	case ungranted(err):
		return a, nil
	case err == nil && len(rows) == 1:
		a.applied, a.reported = parseInterval(rows[0][0])
	}
	return a, err
}

func (c *session) clock(ctx context.Context, g grants) (activity, error) {
	starts := "NULL, NULL"
	if g.view != "" {
		starts = fmt.Sprintf(startsSQL, g.view)
	}
	rows, err := c.rows(ctx, "read open transactions", fmt.Sprintf(clockSQL, g.columns, starts, g.from))
	if err != nil {
		return activity{}, err
	}
	if len(rows) != 1 {
		return activity{}, fmt.Errorf("read open transactions: %d rows where one is expected", len(rows))
	}
	a := activity{grants: g, role: rows[0][2], identity: g.identity(rows[0][3:5])}
	c.source.era.Saw(a.identity)
	for i, into := range []*time.Time{&a.now, &a.host, nil, nil, nil, &a.oldest, &a.youngest} {
		if into == nil || rows[0][i] == "" {
			continue
		}
		if *into, err = time.Parse(time.DateTime, rows[0][i]); err != nil { // a fraction may follow
			return activity{}, fmt.Errorf("read open transactions: the clock is in a form that is not understood")
		}
	}
	return a, nil
}

// parseInterval reads "+00 00:00:12".
func parseInterval(text string) (time.Duration, bool) {
	var days, hours, minutes, seconds int
	n, err := fmt.Sscanf(strings.TrimPrefix(text, "+"), "%d %d:%d:%d", &days, &hours, &minutes, &seconds)
	if err != nil || n != 4 {
		return 0, false
	}
	return time.Duration(((days*24+hours)*60+minutes)*60+seconds) * time.Second, true
}

func (a activity) replica() bool { return a.role != "PRIMARY" }

// offset is that of the host's time zone. It is not believed where it is none
// of any zone: then SYSDATE was fixed by a parameter, and tells nothing.
func (a activity) offset() (time.Duration, bool) {
	distance := a.host.Sub(a.now)
	offset := distance.Round(15 * time.Minute)
	off := (distance - offset).Abs()
	return offset, off <= clockSlack && offset.Abs() <= 15*time.Hour
}

// exact reports whether every open transaction was seen that may write what is
// read.
func (a activity) exact() bool {
	_, sound := a.offset()
	return a.view != "" && !a.blind && sound && !a.replica() && a.others == others{}
}

func (a activity) horizon(overlap time.Duration, k timeKind, loc *time.Location) observer.Horizon {
	if a.replica() && !a.reported {
		return observer.Horizon{Lag: max(overlap, source.ClockOverlap(0))}
	}
	exact := a.exact()
	// A transaction is noted as of the beginning of the second in which it began.
	clock := a.now.Truncate(time.Second)
	if !exact {
		clock, overlap = a.now.Add(-a.applied), source.ClockOverlap(overlap)
	}
	at, earliest := source.OpenSince(clock, a.started(loc), margin, overlap)
	h := observer.Horizon{Lag: a.now.Sub(at), Exact: exact}
	if !a.held() {
		h.Cursor, h.Earliest = k.Horizon(at, loc), k.Horizon(earliest, loc)
	}
	return h
}

// held reports whether a transaction began later than now: it was open when the
// host's clock went back, once a year or by mistake, and may have written at any
// time since then. Until it ends, the horizon is the cursor before all others.
func (a activity) held() bool { return a.youngest.Sub(a.host) > margin }

// warnings says why the horizon is not exact, and what would make it so.
func (a activity) warnings() []string {
	w := a.grants.warnings()
	_, sound := a.offset()
	switch {
	case a.replica() && !a.reported:
		w = append(w, "This is a standby, and how far it is behind is hidden, so the low-water mark does not move. GRANT SELECT ON SYS.V_$DATAGUARD_STATS to the account that reads.")
	case a.replica():
		w = append(w, "This is a standby, which does not know the open transactions of its primary: the horizon is what was applied, less the overlap.")
	case !sound:
		w = append(w, "SYSDATE is not the time (is FIXED_DATE set?), so the starts of transactions cannot be understood and the horizon is the clock less the overlap.")
	}
	return w
}
