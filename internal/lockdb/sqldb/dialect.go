package sqldb

import (
	"encoding/json"
	"fmt"
	"time"
)

// dialect holds the differences in the text of statements: what stands for a placeholder's
// dollar, and for each token of [Rendering.SQL] that does not depend on INT_LOCK.
type dialect struct {
	name, placeholder string
	tokens            map[string]string
	// timeArg makes a time a parameter, and list some texts.
	timeArg func(time.Time) any
	list    func(texts []string) (any, error)
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
		},
		timeArg: func(t time.Time) any { return t },
		list:    func(texts []string) (any, error) { return texts, nil },
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
			"standby": `FALSE`,
		},
		timeArg: func(t time.Time) any { return t.UTC().Format(sqliteTime) },
		list:    jsonList,
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
