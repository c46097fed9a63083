package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
)

// margin covers the moment between a transaction's fixing its time and its showing
// that time to others.
const margin = time.Second

// lookSQL is what polls ask before they read: the identity of the database, its open
// transactions, and of each table in $1 and $2, its schema and name, a stamp that is another
// one when something of what [tableSQL] says has changed. All of it is qualified: the path
// of the reader finds the tables.
//
// The clock is that of the beginning of the statement, before it looks at the
// sessions: a transaction that it does not see began after that. Times are
// microseconds since 1970.
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
//
// Each version of a row of the catalogue has the transaction that wrote it, which no later
// change leaves as it is, nor VACUUM. LIMIT has the server take the index. What follows the columns is
// [behindSQL], or nothing.
const lookSQL = `
SELECT %s,
       (extract(epoch FROM pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
       (extract(epoch FROM s.oldest) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
       s.hidden,
       s.untraced,
       (SELECT (extract(epoch FROM pg_catalog.min(p.prepared)) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
          FROM pg_catalog.pg_prepared_xacts p WHERE p.database OPERATOR(pg_catalog.=) pg_catalog.current_database()),
       (extract(epoch FROM s.youngest) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
       pg_catalog.pg_is_in_recovery(),
       (extract(epoch FROM pg_catalog.pg_last_xact_replay_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8,
       pg_catalog.current_setting('track_activities'),
       w.schema, w.name, t.stamp
FROM (SELECT pg_catalog.min(a.xact_start)
               FILTER (WHERE a.may_write AND COALESCE(a.application_name, '') OPERATOR(pg_catalog.!~~) '` + sessionPrefix + `%%') AS oldest,
             pg_catalog.max(a.xact_start) AS youngest,
             pg_catalog.count(*) FILTER (WHERE a.backend_type IS NULL AND a.backend_start IS NULL) AS hidden,
             pg_catalog.count(*) FILTER (WHERE a.may_write AND a.state OPERATOR(pg_catalog.=) 'disabled') AS untraced
        FROM (SELECT *, COALESCE(backend_type, '') OPERATOR(pg_catalog.<>) ALL ('{autovacuum launcher,autovacuum worker,walsender,parallel worker}') AS may_write
                FROM pg_catalog.pg_stat_activity
               WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database() AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()) a) s
LEFT JOIN (ROWS FROM (pg_catalog.unnest($1::pg_catalog.name[]), pg_catalog.unnest($2::pg_catalog.name[])) AS w(schema, name)
  CROSS JOIN LATERAL (
    SELECT pg_catalog.concat_ws('/', n.nspname, c.oid, c.xmin, pg_catalog.has_table_privilege(c.oid, 'SELECT'), ` + replicatedSQL + `,
             (SELECT pg_catalog.string_agg(pg_catalog.concat(a.attnum, ':', a.xmin, ':', pg_catalog.format_type(a.atttypid, a.atttypmod)), ',' ORDER BY a.attnum)
                FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0)%s) AS stamp
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
     WHERE c.relname OPERATOR(pg_catalog.=) w.name AND c.relkind OPERATOR(pg_catalog.=) ` + kinds + `
       AND (n.nspname OPERATOR(pg_catalog.=) w.schema OR w.schema OPERATOR(pg_catalog.=) '' AND pg_catalog.pg_table_is_visible(c.oid))
     LIMIT 1) t
) ON true`

// behindSQL adds to the stamp of a view or a parent the rows of all that it reads. It is left out where
// all tables were found to be neither: it makes the look a fifth dearer. ARRAY has the server take the
// index.
const behindSQL = `,
             CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'r' AND c.relhassubclass OR c.relkind OPERATOR(pg_catalog.=) ANY ('{p,v}') THEN (` + reachedSQL + `
               SELECT pg_catalog.string_agg(pg_catalog.concat(c.oid, ':', c.xmin, ':', w.xmin, ':', ` + replicatedSQL + `), ',' ORDER BY c.oid)
                 FROM pg_catalog.pg_class c
                 LEFT JOIN pg_catalog.pg_rewrite w ON w.ev_class OPERATOR(pg_catalog.=) c.oid AND w.ev_type OPERATOR(pg_catalog.=) '1'
                WHERE c.oid OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT r.oid FROM reached r))) END`

// identitySQL names the cluster, its timeline and the database. A restored cluster keeps its identifier
// and takes a new timeline. So does a replica that was promoted: what the old primary had not yet sent it
// is lost there too. The first checkpoint after that may take minutes; until it ends, the end of the
// recovery has the new timeline.
const identitySQL = `
       (SELECT pg_catalog.concat('system:', s.system_identifier, '/', GREATEST(c.timeline_id, r.min_recovery_end_timeline), '/', d.oid)
          FROM pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_control_recovery() r, pg_catalog.pg_database d
         WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`

// noIdentitySQL is for a role that may not look at the control file.
const noIdentitySQL = "NULL"

// look is the answer to [lookSQL].
type look struct {
	activity
	identity string // empty for unknown
	at       time.Time
	stamps   map[tableName]string
}

// tableName is that of a table in the configuration; without a schema, it is found by the path.
type tableName struct{ schema, name string }

func parseTable(text string) tableName {
	if i := strings.IndexByte(text, '.'); i > 0 {
		return tableName{text[:i], text[i+1:]}
	}
	return tableName{name: text}
}

// Identity implements [observer.Source]. Where the role may not look at the
// control file, it cannot tell.
func (s *Source) Identity(ctx context.Context) (string, error) {
	l, err := s.look(ctx, observer.Query{})
	return l.identity, err
}

// look asks what all polls that wait for a look ask, of which one is for the table of q.
func (s *Source) look(ctx context.Context, q observer.Query) (look, error) {
	return s.looks.Ask(ctx, parseTable(q.Table), func(ctx context.Context, tables []tableName) (look, error) {
		behind := behindSQL
		if s.relations.alone(tables) {
			behind = ""
		}
		return inSession(ctx, s, func(c *session) (look, error) { return c.look(ctx, tables, behind) })
	})
}

// look asks for stamps that end with behind.
func (c *session) look(ctx context.Context, tables []tableName, behind string) (look, error) {
	l := look{stamps: make(map[tableName]string)}
	identity := identitySQL
	if c.kept.blind {
		identity = noIdentitySQL
	}
	var schemas, names []string
	for _, t := range tables {
		schemas, names = append(schemas, t.schema), append(names, t.name)
	}
	questions := []question{{
		sql:    fmt.Sprintf(lookSQL, identity, behind),
		params: [][]byte{arrayOf(schemas), arrayOf(names)},
		byPath: true,
		fixed:  true,
	}}
	if c.isOf(12) { // Planned for each, it would take ten times as long, and compiled a hundred times.
		questions = append([]question{{sql: "SET LOCAL plan_cache_mode = force_generic_plan", byPath: true, silent: true}}, questions...)
		if !c.kept.settled {
			questions = append([]question{{sql: "SET LOCAL jit = off", byPath: true, silent: true}}, questions...)
		}
	}
	answers, err := c.ask(ctx, "look at open transactions", questions...)
	switch {
	case len(tables) > 0 && (hasState(err, untranslatable) || hasState(err, wrongEncoding)):
		return c.look(ctx, nil, "") // A name that the database cannot have fails by itself.
	case hasState(err, missingRight) && !c.kept.blind:
		c.kept.blind = true
		return c.look(ctx, tables, behind)
	case err != nil:
		return look{}, err
	}
	rows := answers[0].rows
	if len(rows) == 0 || rows[0][1] == nil {
		return look{}, fmt.Errorf("look at open transactions: %d rows without a clock", len(rows))
	}
	l.at, l.identity, l.activity = time.Now(), string(rows[0][0]), activityOf(rows[0][1:])
	if c.source.era.Saw(l.identity) {
		c.source.pool.Reset()
	}
	for _, row := range rows {
		if stamp := string(row[12]); stamp != "" {
			l.stamps[tableName{string(row[10]), string(row[11])}] = l.identity + "/" + stamp
		}
	}
	return l, nil
}

// arrayOf writes texts as an array. A map remembers plans, and is for one goroutine.
func arrayOf(texts []string) []byte {
	array, err := pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, texts, []byte{})
	if err != nil {
		panic(err) // Texts always encode.
	}
	return array
}

// relations are what is known of tables, so that polls need not ask again.
type relations struct {
	mu    sync.Mutex
	known map[tableName]known
}

// known is a table as it was when a look has seen its stamp last.
type known struct {
	relation relation
	at       time.Time
}

// freshFor is for how long a look is good enough for a read: a poll reads at once.
const freshFor = 100 * time.Millisecond

// unchanged returns what is known of a table that a look has found as it was, and forgets
// it of another.
func (r *relations) unchanged(text string, l look) (relation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := parseTable(text)
	k, ok := r.known[name]
	if !ok || k.relation.stamp != l.stamps[name] {
		delete(r.known, name)
		return relation{}, false
	}
	k.at = l.at
	r.known[name] = k
	return k.relation, true
}

// fresh returns what is known of a table that a look has just seen.
func (r *relations) fresh(text string) (relation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.known[parseTable(text)]
	return k.relation, ok && k.relation.fixed() && time.Since(k.at) < freshFor
}

// alone reports whether all of the tables are known to be alone. One that is no more has another stamp.
func (r *relations) alone(tables []tableName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(tables, func(name tableName) bool { return name.name != "" && !r.known[name].relation.alone() })
}

// keep remembers a table that was looked up after the look, in its session.
func (r *relations) keep(text string, l look, of relation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := parseTable(text)
	if of.stamp = l.stamps[name]; of.stamp != "" && r.known[name].at.Before(l.at) {
		r.known[name] = known{relation: of, at: l.at}
	}
}

func (r *relations) forget(of relation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.known, func(_ tableName, k known) bool { return k.relation.stamp == of.stamp })
}
