package sqldb

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// dialect holds the differences in the text of statements. Statements are written
// once, with $1 placeholders and these tokens:
//
//	{now}     the database's clock, as the tables store it
//	{ago $n}  the same, $n seconds (a number) earlier
//	{in $n}   the same, $n seconds later
//	{utc}     the clock as INT_LOCK stores it: UTC without a zone
//	{utcago $n}
//	{mark c}  the time in column c as text, which no setting of a session changes
//	{past $n} like {ago $n}, but the same for all rows of a statement, so that
//	          an index can serve it
//	{among $n} compares with the texts of a list, $n; see [DB.List]
//	{numbered $n} has the texts of a list, $n, as value, and their numbers from 1 as n
//	{elements $n} has the elements of a JSON array, $n, as value
//	{share}   locks the rows of a subquery against change, where that is needed
//	{update}  locks them for a change
//	{skip}    the same, but leaves out those that another client has locked
//	{nowait}  the same, but fails when another client has locked one
//	{standby} reports whether the server is a standby, which may be behind
type dialect struct {
	name                                                             string
	now, ago, in, mark, past, utc, utcAgo, among, numbered, elements string
	share, update, skip, nowait, standby                             string
	// bytes is the type of binary data.
	bytes string
	// rewrite adapts the placeholders.
	rewrite func(string) string
	// timeArg makes a time a parameter, and list some texts.
	timeArg func(time.Time) any
	list    func(texts []string) (any, error)
	cache   sync.Map
}

var agoToken = regexp.MustCompile(`\{(ago|in|mark|utcago|past|among|numbered|elements) ([^}]+)\}`)

// sql returns the statement in the dialect.
func (d *dialect) sql(text string) string {
	if done, ok := d.cache.Load(text); ok {
		return done.(string)
	}
	done := agoToken.ReplaceAllStringFunc(text, func(token string) string {
		m := agoToken.FindStringSubmatch(token)
		form := map[string]string{"ago": d.ago, "in": d.in, "mark": d.mark, "utcago": d.utcAgo, "past": d.past, "among": d.among, "numbered": d.numbered, "elements": d.elements}[m[1]]
		return strings.ReplaceAll(form, "$n", m[2])
	})
	done = strings.NewReplacer("{now}", d.now, "{utc}", d.utc, "{share}", d.share, "{update}", d.update, "{skip}", d.skip, "{nowait}", d.nowait, "{standby}", d.standby).Replace(done)
	done = d.rewrite(done)
	d.cache.Store(text, done)
	return done
}

func postgresDialect() *dialect {
	return &dialect{
		name:     "postgres",
		now:      `clock_timestamp()`,
		ago:      `(clock_timestamp() - make_interval(secs => $n))`,
		in:       `(clock_timestamp() + make_interval(secs => $n))`,
		mark:     `CAST($n AT TIME ZONE 'UTC' AS TEXT)`,
		past:     `(now() - make_interval(secs => $n))`,
		utc:      `(clock_timestamp() AT TIME ZONE 'UTC')`,
		utcAgo:   `((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $n))`,
		among:    `= ANY ($n::text[])`,
		numbered: `(SELECT n, value FROM unnest($n::text[]) WITH ORDINALITY AS l (value, n))`,
		elements: `json_array_elements($n::json)`,
		share:    ` FOR SHARE`,
		update:   ` FOR UPDATE`,
		skip:     ` FOR UPDATE SKIP LOCKED`,
		nowait:   ` FOR UPDATE NOWAIT`,
		standby:  `pg_is_in_recovery()`,
		bytes:    `bytea`,
		rewrite:  func(s string) string { return s },
		timeArg:  func(t time.Time) any { return t },
		list:     func(texts []string) (any, error) { return texts, nil },
	}
}

// sqliteTime is the form of times in SQLite: fixed width, UTC, so that
// their order as text is their order in time.
const sqliteTime = "2006-01-02 15:04:05.000000"

var placeholder = regexp.MustCompile(`\$(\d+)`)

func sqliteDialect() *dialect {
	return &dialect{
		name:     "sqlite",
		now:      `strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
		ago:      `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $n))`,
		in:       `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', $n))`,
		mark:     `$n`,
		past:     `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $n))`,
		utc:      `strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
		utcAgo:   `strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', $n))`,
		among:    `IN (SELECT value FROM json_each($n))`,
		standby:  `FALSE`,
		numbered: `(SELECT key + 1 AS n, value FROM json_each($n))`,
		elements: `json_each($n)`,
		bytes:    `blob`,
		rewrite:  func(s string) string { return placeholder.ReplaceAllString(s, `?$1`) },
		timeArg:  func(t time.Time) any { return t.UTC().Format(sqliteTime) },
		list:     jsonList,
	}
}

// jsonList is one JSON array: SQLite has no array type and limits the number of
// parameters.
func jsonList(texts []string) (any, error) {
	list, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("encode a list: %w", err)
	}
	return string(list), nil
}
