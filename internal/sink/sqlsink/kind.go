package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/sink"
)

// Kind is the kind of sink that is of type sql in the configuration.
var Kind = kind.Kind[sink.Settings]{Name: "sql", Settings: func() sink.Settings { return new(settings) }}

type settings struct {
	// URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the parameters of libpq.
	// Required.
	URL     field.URL `key:"url" shown:"required for sql" required:"true" schemes:"postgres|postgresql"`
	URLFile string    `key:"url-file" unit:"file name"`
	// Schema has the tables. Default: public.
	Schema string `key:"schema" default:"public" unit:"name"`
	// Create makes the tables where they are missing. Default: false.
	Create bool `key:"create" default:"false"`
}

// DDL returns the statements that make the tables.
func (s *settings) DDL() string { return DDL(s.Schema) }

// Target is the schema: two sinks would write one feed.
func (s *settings) Target() (key, place string) {
	config, err := parse(s.URL.Reveal())
	if err != nil {
		return "", "" // Check says so.
	}
	return "url", fmt.Sprintf("%s:%d/%s %s", config.Host, config.Port, config.Database, s.Schema)
}

func (s *settings) Check(r field.Report) {
	if _, err := parse(s.URL.Reveal()); err != nil {
		r.Reject("url", err.Error())
	}
	if len(s.Schema) > 63 || strings.Contains(s.Schema, "\x00") {
		r.Reject("schema", "this is not a valid name of a schema; use one of at most 63 bytes")
	}
}

// Batch is where a larger one stores hardly more a second.
func (*settings) Batch() int { return 1000 }

// Opener implements [sink.Settings].
func (s *settings) Opener(o sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	opts := Options{Sink: o.Sink, URL: s.URL.Reveal(), Schema: s.Schema, Create: s.Create}
	return func(ctx context.Context, t sink.Term) (sink.Sink, error) { return Open(ctx, opts, t) }
}

// parse reads the URL. Of several hosts one counts that can be written, unless the URL says
// otherwise. An error does not repeat it.
func parse(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if file, is := errors.AsType[*fs.PathError](err); is {
		return nil, fmt.Errorf("a file that the URL names cannot be read: %w", file)
	}
	if err != nil {
		return nil, errors.New("this is not a URL of PostgreSQL; use postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, " +
			"and encode all but letters and digits in a password, such as %40 for @")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	if config.ValidateConnect == nil && len(config.Fallbacks) > 0 {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	pgsession.Pin(config.RuntimeParams, "client_encoding", pgsession.Encoding)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "observerd"
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	return config, nil
}

// Probe has the server plan what a sink would run, which asks for tables, columns, keys and
// rights.
func (s *settings) Probe(ctx context.Context) (findings []kind.Finding) {
	config, err := parse(s.URL.Reveal())
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return []kind.Finding{{Err: explained(ctx, "connect", err)}}
	}
	probed := &Sink{conn: conn, sql: newStatements(s.Schema)}
	defer func() { _ = probed.Close() }()
	findings, err = probed.probe(ctx, s.Schema, s.Create)
	if err != nil {
		findings = append(findings, kind.Finding{Err: explained(ctx, "look at the target", err)})
	}
	return findings
}

func (s *Sink) probe(ctx context.Context, schema string, create bool) (findings []kind.Finding, err error) {
	find := func(warning bool, format string, args ...any) {
		findings = append(findings, kind.Finding{Warning: warning, Err: fmt.Errorf(format, args...)})
	}
	var version int
	var encoding string
	var readOnly, noSchema, noTables, mayCreate bool
	if err := s.conn.QueryRow(ctx, serverSQL, schema).Scan(&version, &encoding, &readOnly, &mayCreate); err != nil {
		return nil, err
	}
	if err := s.conn.QueryRow(ctx, missingSQL, schema).Scan(&noSchema, &noTables); err != nil {
		return nil, err
	}
	if version < 130000 {
		find(false, "the server is PostgreSQL %d; a feed needs version 13", version/10000)
	}
	if readOnly {
		find(false, "%s", advice["25006"])
	}
	if encoding != pgsession.Encoding {
		find(true, "the encoding of the database is %s: an event with a character that it lacks is refused; make one with ENCODING 'UTF8'", encoding)
	}
	if noTables && !create {
		find(false, "%s", missing)
	}
	if noTables && create && !mayCreate {
		find(false, "the tables do not exist, and the role may not create them; run GRANT CREATE ON SCHEMA, or on the database where there is no schema, "+
			"or have its owner run what 'observerd sinks sql' prints")
	}
	if noTables {
		return findings, nil
	}
	stores := slices.Concat([]any{"", uuid.Nil, 0, uuid.Nil}, s.knownColumns(nil), positionColumns(nil), eventColumns(nil))
	for _, planned := range []pgx.QueuedQuery{
		{SQL: s.sql.claim, Arguments: append(stores[:4:4], false)}, {SQL: s.sql.claimed, Arguments: stores[:1]}, {SQL: s.sql.positions, Arguments: []any{"", []string{}}},
		{SQL: s.sql.store, Arguments: stores},
	} {
		if _, err := s.conn.Exec(ctx, "EXPLAIN "+planned.SQL, planned.Arguments...); err != nil {
			return findings, err
		}
	}
	rows, _ := s.conn.Query(ctx, columnsSQL, schema, strings.Fields(ourColumns)) // The error comes with the rows.
	var column string
	var isData bool
	_, err = pgx.ForEachRow(rows, []any{&column, &isData}, func() error {
		if isData {
			find(true, "the column %s is not json: an event with \\u0000 may be refused, and keys may change their order", column)
		} else {
			find(false, "the column %s has no default and must not be NULL: every event is refused; give it a default", column)
		}
		return nil
	})
	return findings, err
}

// serverSQL asks what a server can and lets the role do in the schema $1.
const serverSQL = `
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_setting('transaction_read_only')::bool,
       coalesce((SELECT pg_catalog.has_schema_privilege(n.oid, 'CREATE') FROM pg_catalog.pg_namespace n WHERE n.nspname = $1::text::name),
                pg_catalog.has_database_privilege(current_database(), 'CREATE'))`

// columnsSQL lists the columns beside $2 that refuse every row, and data where it is no json.
const columnsSQL = `
SELECT c.relname || '.' || a.attname, a.attname = ANY ($2::text[])
  FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname IN ('obs_feed', 'obs_feed_event')
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE n.nspname = $1::text::name
   AND CASE WHEN a.attname = ANY ($2::text[]) THEN a.attname = 'data' AND a.atttypid <> 'json'::regtype
            ELSE a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' END
 ORDER BY 1`

const ourColumns = "id sink stream log epoch seq event_id digest updated_at type subject change version time observed snapshot data"
