package sqldb

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Rendering is what the text of a statement depends on: the dialect, the schemas of
// PostgreSQL in which our tables and INT_LOCK are, and the generation of INT_LOCK. It is a
// value; see [DB.Rendering] for the current one. The zero value is of no use.
type Rendering struct {
	dialect *dialect
	// ours and locks are the schemas of our tables and of INT_LOCK. They are empty before
	// the first connection, and on SQLite.
	ours, locks string
	// perRow reports that INT_LOCK has EXPIRED_AFTER.
	perRow bool
}

// Plain returns a rendering without schemas, as people read statements. perRow is that of an
// INT_LOCK that has EXPIRED_AFTER.
func Plain(backend string, perRow bool) *Rendering {
	d := postgresDialect()
	if backend == "sqlite" {
		d = sqliteDialect()
	}
	return &Rendering{dialect: d, perRow: perRow}
}

// piece matches what is rendered in a statement: a token, the name of a table or of the
// sequence, also as a text that is cast to regclass, and a placeholder. A quoted identifier
// is matched to be left alone.
var piece = regexp.MustCompile(`"(?:[^"]|"")*"|\{([a-z]+)(?: ([^{}]+))?\}|'?\b(?:int_lock|obs_[a-z_]+)\b'?|\$\d+`)

// SQL returns the statement in the dialect, with the schemas of its tables. Statements have
// placeholders as $1, and these tokens, which carry their arguments; x is an expression, and
// of INT_LOCK's tokens one in seconds:
//
//	{now}        the database's clock, as our tables store it
//	{ago x}      the same, x seconds earlier
//	{in x}       the same, x seconds later
//	{utc}        the clock as INT_LOCK stores it: UTC without a zone
//	{utcago x}
//	{mark c}     the time in column c as text, which no setting of a session changes
//	{past x}     like {ago x}, but the same for all rows of a statement, so that
//	             an index can serve it
//	{among x}    compares with the texts of a list, x; see [DB.List]
//	{numbers x}  compares with the texts of a list, x, as numbers, so that an index can
//	             serve it
//	{numbered x} has the texts of a list, x, as value, and their numbers from 1 as n
//	{elements x} has the elements of a JSON array, x, as value
//	{share}      locks the rows of a subquery against change, where that is needed
//	{update}     locks them for a change
//	{skip}       the same, but leaves out those that another client has locked
//	{nowait}     the same, but fails when another client has locked one
//	{unsynced}   is true, and lets the transaction end before it is on the disk, where
//	             nothing is lost if it never gets there
//	{standby}    reports whether the server is a standby, which may be behind
//	{server}     is another text when the server was started anew or is another one, or the
//	             table of events was emptied or made anew; empty where that cannot be said
//
// Spring Integration up to 6 keeps the TTL in the reader of INT_LOCK, 7 keeps the expiry in
// the row. In a table that has EXPIRED_AFTER both columns are written, so that neither
// generation mistakes a lease of ours for expired. l is the alias of the row:
//
//	{cols} {vals x}  the columns of an insert that date a lease, and their values
//	{touch x}        the assignments that make a lease run anew
//	{prolong l x}    the same where the row may have to last longer for others who share it
//	{began l x}      when the lease began to run that ends x after
//	{alive l x}      its term may still renew the lease and write under it
//	{ended l x}      it may not
//	{expired l x}    others may take the lock: by the holder's own TTL, which is in obs_lock,
//	                 or by x for a foreign holder
//	{stale l x}      the lease, which is ours and has its row of obs_lock as o, ended x ago
//
// And of locks that several hold, each with a row of obs_hold:
//
//	{live h}        the time of the row h is not over
//	{conflict a b}  the modes a and b keep each other out, as those of package lock
func (r *Rendering) SQL(text string) string {
	return piece.ReplaceAllStringFunc(text, func(match string) string {
		switch match[0] {
		case '"':
			return match
		case '{':
			return r.token(match)
		case '$':
			return r.dialect.placeholder + match[1:]
		}
		return r.table(match)
	})
}

// token returns what stands for a token; one that is not ours stays.
func (r *Rendering) token(match string) string {
	parts := piece.FindStringSubmatch(match)
	name, x := parts[1], parts[2]
	table := inReader
	if r.perRow {
		table = inRow
	}
	a, b, _ := strings.Cut(x, " ")
	for _, forms := range []map[string]string{r.dialect.tokens, table, inHolds} {
		if form, ok := forms[name]; ok {
			return r.SQL(strings.NewReplacer("$a", a, "$b", b, "$x", x).Replace(form))
		}
	}
	return match
}

// inHolds are the forms of the tokens on obs_hold.
var inHolds = map[string]string{
	"live": "($x.touched_at >= {ago $x.ttl_ms / 1000.0})",
	"conflict": `($a = 'exclusive' OR $b = 'exclusive'
       OR ($a = 'shared' AND $b = 'intent-exclusive') OR ($a = 'intent-exclusive' AND $b = 'shared'))`,
}

// The forms of INT_LOCK's tokens where readers have the TTL, and where the row has the
// expiry: a parameter that says the TTL must be used there too.
var (
	inReader = map[string]string{
		"cols": "created_date", "vals": "{utc}",
		"touch": "created_date = {utc}", "prolong": "created_date = {utc}",
		"began":   "$a.created_date",
		"alive":   "($a.created_date >= {utcago $b})",
		"ended":   "($a.created_date < {utcago $b})",
		"expired": "($a.created_date < {utcago " + holderTTL + "})",
		"stale":   "$a.created_date < {utcago ($b + o.ttl_ms / 1000.0)}",
	}
	inRow = map[string]string{
		"cols": "created_date, expired_after", "vals": "{utc}, ({utc} + make_interval(secs => $x))",
		"touch":   "created_date = {utc}, expired_after = ({utc} + make_interval(secs => $x))",
		"prolong": "created_date = {utc}, expired_after = GREATEST($a.expired_after, ({utc} + make_interval(secs => $b)))",
		// Spring does not touch CREATED_DATE when it renews or takes over.
		"began":   "($a.expired_after - make_interval(secs => $b))",
		"alive":   "($a.expired_after >= {utc}" + used + ")",
		"ended":   "($a.expired_after < {utc}" + used + ")",
		"expired": "($a.expired_after < {utc}" + used + ")",
		"stale":   "$a.expired_after < {utcago $b}",
	}
)

const (
	// holderTTL is the TTL of the holder of a row, in seconds, or $b for a foreign one.
	holderTTL = `COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = $a.lock_key AND own.region = $a.region AND own.term = $a.client_id), $b)`
	used = " AND CAST($b AS DOUBLE PRECISION) IS NOT NULL"
)

// table returns the name of a table with its schema, in quotes where it is a text.
func (r *Rendering) table(match string) string {
	name := strings.Trim(match, "'")
	if r.ours == "" {
		return match
	}
	qualified := r.identifier(name).Sanitize()
	if match == "'"+name+"'" {
		return "'" + strings.ReplaceAll(qualified, "'", "''") + "'"
	}
	return strings.Replace(match, name, qualified, 1)
}

// identifier is a table with its schema.
func (r *Rendering) identifier(table string) pgx.Identifier {
	if table == "int_lock" {
		return pgx.Identifier{r.locks, table}
	}
	return pgx.Identifier{r.ours, table}
}

// renderings has the current [Rendering].
type renderings struct{ now atomic.Pointer[Rendering] }

func newRenderings(d *dialect) *renderings {
	r := &renderings{}
	r.now.Store(&Rendering{dialect: d})
	return r
}

// change replaces the current one unless it stays the same.
func (r *renderings) change(f func(*Rendering)) {
	for {
		before := r.now.Load()
		next := *before
		f(&next)
		if next == *before || r.now.CompareAndSwap(before, &next) {
			return
		}
	}
}

// Rendering returns the current one. It is another one when the first connection has found
// the tables, when tables were made or found elsewhere, and when INT_LOCK has become a table
// of the other generation.
func (db *DB) Rendering() *Rendering { return db.renderings.now.Load() }

// dialect holds the differences in the text of statements: what stands for a placeholder's
// dollar, and for each token of [Rendering.SQL] that does not depend on INT_LOCK.
type dialect struct {
	name, placeholder string
	tokens            map[string]string
	// timeArg makes a time a parameter, and list some texts.
	timeArg func(time.Time) any
	list    func(texts []string) any
}

func postgresDialect() *dialect {
	return &dialect{
		name: "postgres", placeholder: "$",
		tokens: map[string]string{
			"now":      `clock_timestamp()`,
			"ago":      `(clock_timestamp() - make_interval(secs => $x))`,
			"in":       `(clock_timestamp() + make_interval(secs => $x))`,
			"mark":     `CAST($x AT TIME ZONE 'UTC' AS TEXT)`,
			"past":     `(now() - make_interval(secs => $x))`,
			"utc":      `(clock_timestamp() AT TIME ZONE 'UTC')`,
			"utcago":   `((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $x))`,
			"among":    `= ANY ($x::text[])`,
			"numbers":  `= ANY ($x::text[]::bigint[])`,
			"numbered": `(SELECT n, value FROM unnest($x::text[]) WITH ORDINALITY AS l (value, n))`,
			"elements": `json_array_elements($x::json)`,
			"share":    ` FOR SHARE`,
			"update":   ` FOR UPDATE`,
			"skip":     ` FOR UPDATE SKIP LOCKED`,
			"nowait":   ` FOR UPDATE NOWAIT`,
			"standby":  `pg_is_in_recovery()`,
			"unsynced": `set_config('synchronous_commit', 'off', TRUE) = 'off'`,
			"server":   `(SELECT concat(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT), '/', pg_relation_filenode('obs_event'::regclass)))`,
		},
		timeArg: func(t time.Time) any { return t },
		list:    func(texts []string) any { return texts },
	}
}

// sqliteTime is the form of times in SQLite: fixed width, UTC, so that
// their order as text is their order in time.
const sqliteTime = "2006-01-02 15:04:05.000000"

func sqliteDialect() *dialect {
	return &dialect{
		name: "sqlite", placeholder: "?",
		tokens: map[string]string{
			"now":      `strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
			"ago":      `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $x))`,
			"in":       `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', $x))`,
			"mark":     `$x`,
			"past":     `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $x))`,
			"utc":      `strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
			"utcago":   `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $x))`,
			"among":    `IN (SELECT value FROM json_each($x))`,
			"numbers":  `IN (SELECT CAST(value AS INTEGER) FROM json_each($x))`,
			"numbered": `(SELECT key + 1 AS n, value FROM json_each($x))`,
			"elements": `json_each($x)`,
			"share":    ``, "update": ``, "skip": ``, "nowait": ``,
			"standby": `FALSE`, "server": `''`, "unsynced": `TRUE`,
		},
		timeArg: func(t time.Time) any { return t.UTC().Format(sqliteTime) },
		list:    jsonList,
	}
}

// jsonList is one JSON array: SQLite has no array type and limits the number of
// parameters.
func jsonList(texts []string) any {
	list, err := json.Marshal(texts)
	if err != nil {
		panic(err) // Strings always encode.
	}
	return string(list)
}
