package liveness

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// livenessClass is the first half of the key of our advisory locks; the second
// is made of the boot id. The letters are "obsd".
const livenessClass = 0x6f627364

// SessionPresence shows a process by a session of its own, which holds an
// advisory lock. The server releases it when the process dies, and every
// node can read it in pg_locks. It is a shared lock: should two boot ids give one
// key, each hides the death of the other, and neither waits.
type SessionPresence struct {
	// PID is the process of the server that serves the session; PIDOfOther returns that of
	// another connection of this process.
	PID        string
	PIDOfOther func(ctx context.Context) (string, error)

	db     *sqldb.DB
	sql    *sqldb.Statements[presenceSQL]
	bootID string
	config *pgx.ConnConfig
	pooler *sqldb.Pooler
	conn   *pgx.Conn
	// restsUntil is until when it looks at the leases alone, for rests, a multiple of restFor.
	restsUntil     time.Time
	restFor, rests time.Duration
}

// lookSettings are for a plan that is made once, perhaps while there are no locks, and has to
// be that for many. Without sequential scans those of small tables count as dear, which would
// switch on jit.
var lookSettings = map[string]string{"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off", "max_parallel_workers_per_gather": "0"}

func newSessionPresence(db *sqldb.DB, bootID string) *SessionPresence {
	config, pooler := db.Session(func(config *pgx.ConnConfig) {
		config.RuntimeParams["application_name"] += " liveness"
		config.RuntimeParams["statement_timeout"] = sqldb.Millis(timeout)
		// A pooler may have no prepared statements. The look alone is prepared, in a session
		// that was found to be ours.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		maps.Copy(config.RuntimeParams, lookSettings)
	})
	p := &SessionPresence{db: db, sql: newPresenceSQL(db), bootID: bootID, config: config, pooler: pooler, restFor: restFor}
	p.PIDOfOther = func(ctx context.Context) (pid string, err error) {
		err = db.Lease.QueryRowContext(ctx, p.sql.SQL().OtherPID).Scan(&pid)
		return pid, err
	}
	return p
}

func (p *SessionPresence) kind() string { return BySession }

// lasts is false: the server, or a pooler between, may end the session.
func (p *SessionPresence) lasts() bool { return false }

// advisoryKey is the second half of the key of a process's advisory lock.
func advisoryKey(bootID string) uint32 { return crc32.ChecksumIEEE([]byte(bootID)) }

func (p *SessionPresence) appear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return fmt.Errorf("open the session that shows this node: %w", sqldb.WordSession(err))
	}
	p.conn, p.restsUntil = conn, time.Time{}
	if p.pooler.Pooling().Shared() {
		// The advisory lock would stay with a session that serves others.
		return errors.Join(fmt.Errorf("%w: there is a connection pooler in transaction mode", errNoLiveness), p.vanish(ctx))
	}
	if err := p.show(ctx); err != nil {
		return errors.Join(err, p.vanish(ctx))
	}
	return nil
}

// show takes the advisory lock, which is never waited for: shared locks do not
// exclude each other.
func (p *SessionPresence) show(ctx context.Context) error {
	var standby, locked bool
	err := p.conn.QueryRow(ctx, p.sql.SQL().Show, livenessClass,
		int32(advisoryKey(p.bootID))). //nolint:gosec // The same bits, as the function takes them.
		Scan(&p.PID, &standby, &locked)
	switch {
	case err != nil:
		return fmt.Errorf("show this node: %w", err)
	case standby:
		// Others look on the primary.
		return errors.New("show this node: the session is on a standby server")
	case !locked:
		return fmt.Errorf("%w: another session holds the advisory lock of this node alone", errNoLiveness)
	}
	other, err := p.PIDOfOther(ctx)
	if err != nil {
		return fmt.Errorf("show this node: look at another session: %w", err)
	}
	if other == p.PID {
		return fmt.Errorf("%w: two connections share one session, so there is a connection pooler in transaction mode", errNoLiveness)
	}
	return nil
}

func (p *SessionPresence) look(ctx context.Context, regions []string) (snapshot, error) {
	s := snapshot{resting: time.Now().Before(p.restsUntil)}
	present := make(map[string]bool)
	self, shown := "", make(map[string]bool)
	own := strconv.FormatUint(uint64(advisoryKey(p.bootID)), 10)
	text := p.sql.SQL().Look
	if s.resting {
		text = p.sql.SQL().LookAtLeases
	}
	rows, _ := p.conn.Query(ctx, text, pgx.QueryExecModeCacheStatement, regionList(p.db, regions)) // The error comes with the rows.
	defer rows.Close()
	for rows.Next() {
		err := s.add(rows.Scan, func(kind, key, pid string) error {
			switch {
			case kind == "self":
				self = pid
			case key == own:
				shown[pid] = true
			}
			present[key] = true
			return nil
		})
		if err != nil {
			return snapshot{}, fmt.Errorf("look who is alive: %w", err)
		}
	}
	if refused, ok := errors.AsType[*pgconn.PgError](rows.Err()); ok && (refused.Code == noSuchStatement || refused.Code == statementExists) {
		p.pooler.NoteShared()
		return snapshot{}, errPooled
	}
	if err := rows.Err(); err != nil {
		return snapshot{}, fmt.Errorf("look who is alive: %w", err)
	}
	if self != p.PID {
		p.pooler.NoteShared()
	}
	if self != p.PID || !s.resting && !shown[self] {
		return snapshot{}, errPooled
	}
	s.alive = func(bootID string) (alive, known bool) {
		return present[strconv.FormatUint(uint64(advisoryKey(bootID)), 10)], !s.resting
	}
	if !s.resting {
		p.rests = p.rest(s)
		p.restsUntil = time.Now().Add(p.rests)
	}
	s.pace = min(p.rests/looksInRest, longestPace)
	return s, nil
}

const (
	// watchers is how many nodes see the death of any other at once: one of them may be the
	// dead one, and another suspended.
	watchers = 3
	// restFor is for how long the next as many look at the leases alone, between two looks at the
	// sessions and the nodes: to read pg_locks costs the server more than all the rest of a look.
	restFor = 2 * time.Second
	// looksInRest is how often one that rests looks at the leases meanwhile, and longestPace the
	// longest time between two of these looks.
	looksInRest, longestPace = 8, time.Second
	// longestRests is the longest rest, in times of restFor: the watchers may leave all at once.
	longestRests = 5
)

// rest returns for how long enough others watch the same regions: of those that live and have
// our configuration, the nodes whose boot ids come first. The more come before this one, the
// longer it rests, so that many nodes together look little more often than few. Those that come
// next do not rest while somebody is absent, since the watchers may die, too.
func (p *SessionPresence) rest(s snapshot) time.Duration {
	absent := false
	for _, of := range s.signs {
		alive, _ := s.alive(of.boot)
		absent = absent || of.liveness == BySession && !alive
	}
	own := slices.IndexFunc(s.nodes, func(n node) bool { return n.boot == p.bootID })
	if own < 0 {
		return 0
	}
	before := 0
	for _, n := range s.nodes {
		alive, _ := s.alive(n.boot)
		if n.liveness == BySession && alive && n.boot < p.bootID && n.config == s.nodes[own].config {
			before++
		}
	}
	if absent && before < 2*watchers {
		return 0
	}
	return time.Duration(min(before/watchers, longestRests)) * p.restFor
}

// noSuchStatement and statementExists are the answers of another session than that in which
// the look was prepared.
const noSuchStatement, statementExists = "26000", "42P05"

// errPooled reports that our session is not ours alone.
var errPooled = fmt.Errorf("%w: one connection was served by two sessions, so there is a connection pooler in transaction mode", errNoLiveness)

// sessionsPresent looks who has a session.
func sessionsPresent(ctx context.Context, rows Rows, text string) (aliveness, error) {
	present, known := make(map[string]bool), true
	err := rows(ctx, text, func(scan func(...any) error) error {
		var key string
		var standby bool
		err := scan(&key, &standby)
		present[key], known = true, known && !standby
		return err
	})
	return func(bootID string) (bool, bool) {
		return present[strconv.FormatUint(uint64(advisoryKey(bootID)), 10)], known
	}, err
}

func (p *SessionPresence) free(ctx context.Context, l lease) (bool, error) {
	tag, err := p.conn.Exec(ctx, p.sql.SQL().Free, l.Key, l.Region, l.term, l.touched, l.boot,
		strconv.FormatUint(uint64(advisoryKey(l.boot)), 10))
	if err != nil {
		return false, fmt.Errorf("free lock %s of a dead node: %w", l.Key, err)
	}
	return tag.RowsAffected() == 1, nil
}

// vanish closes the session, and with it the advisory lock is given back. The
// server is told, if it listens.
func (p *SessionPresence) vanish(ctx context.Context) error {
	if p.conn == nil {
		return nil
	}
	err := p.conn.Close(ctx)
	p.conn = nil
	if err == nil || sqldb.NoSession(err) || sqldb.Unavailable(err) {
		return nil
	}
	return fmt.Errorf("close the session that shows this node: %w", err)
}
