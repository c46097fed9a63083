package sqlsink

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// DDL returns the statements that make the tables of a feed in a schema, and change
// nothing where they are. The tables are a contract with their readers.
func DDL(schema string) string { return strings.TrimPrefix(rendered(createSQL, schema), "\n") }

const createSQL = `
CREATE TABLE IF NOT EXISTS {schema}.obs_feed (
  sink       text        NOT NULL,
  stream     text        NOT NULL, -- '' is the row of the session that may store
  log        uuid        NOT NULL,
  epoch      bigint      NOT NULL,
  seq        bigint      NOT NULL,
  event_id   uuid        NOT NULL,
  digest     uuid        NOT NULL, -- of the ids of all events up to this one
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (sink, stream)
);

CREATE TABLE IF NOT EXISTS {schema}.obs_feed_event (
  id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id uuid        NOT NULL UNIQUE,
  sink     text        NOT NULL,
  stream   text        NOT NULL,
  seq      bigint      NOT NULL,
  type     text        NOT NULL,
  subject  text        NOT NULL,
  change   text        NOT NULL,
  version  bigint      NOT NULL,
  time     timestamptz,          -- NULL: the row has none that an event can carry
  observed timestamptz,
  snapshot boolean     NOT NULL,
  data     json                  -- json keeps the order of keys and \u0000, jsonb does not
);
`

// beginSQL begins each transaction, and settingsSQL sets what belongs to it: a pooler may
// give the next one another session. The commit is on disk when it is answered, and a
// session whose client has vanished in the middle of a transaction ends soon.
const (
	beginSQL    = `BEGIN ISOLATION LEVEL READ COMMITTED`
	settingsSQL = `
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
       set_config('statement_timeout', '30s', true),
       set_config('lock_timeout', '15s', true),
       set_config('tcp_keepalives_idle', '10', true),
       set_config('tcp_keepalives_interval', '5', true),
       set_config('tcp_keepalives_count', '3', true)`
	commitSQL = `COMMIT`
)

// statements are those of a feed, each in the schema of its tables.
type statements struct{ claim, claimed, store, storeNew, positions string }

func newStatements(schema string) statements {
	return statements{
		claim: rendered(claimSQL, schema), claimed: rendered(claimedSQL, schema),
		store:     rendered(strings.NewReplacer("{repeats}", repeats, "{repeated}", repeated).Replace(storeSQL), schema),
		storeNew:  rendered(strings.NewReplacer("{repeats}", "", "{repeated}", "").Replace(storeSQL), schema),
		positions: rendered(positionsSQL, schema),
	}
}

func rendered(text, schema string) string {
	return strings.ReplaceAll(text, "{schema}", pgx.Identifier{schema}.Sanitize())
}

// claimSQL has the session $4, of the epoch $3 of the log $2, alone store events of the
// sink $1. It waits for a session that is storing. It returns nothing where the epoch is too
// low, unless $5 says that the log was restored, or where another sink has the tables.
const claimSQL = `
INSERT INTO {schema}.obs_feed AS f (sink, stream, log, epoch, seq, event_id, digest, updated_at)
SELECT $1::text, '', $2::uuid, $3::bigint, 0, $4::uuid, $4::uuid, clock_timestamp()
 WHERE NOT EXISTS (SELECT FROM {schema}.obs_feed o WHERE o.sink <> $1::text AND o.stream = '')
    ON CONFLICT (sink, stream) DO UPDATE
   SET log = EXCLUDED.log, epoch = EXCLUDED.epoch, event_id = EXCLUDED.event_id, digest = EXCLUDED.digest, updated_at = EXCLUDED.updated_at
 WHERE f.epoch <= EXCLUDED.epoch OR $5::boolean
RETURNING 1`

// claimedSQL is the claim that keeps the sink $1 from storing.
const claimedSQL = `
SELECT f.sink, f.epoch, f.event_id
  FROM {schema}.obs_feed f
 WHERE f.stream = ''
 ORDER BY f.sink = $1::text
 LIMIT 1`

// repeats leaves out events that are stored already, and takes half as long again; repeated
// counts them.
const (
	repeats = `
      ON CONFLICT (event_id) DO NOTHING`
	repeated = ` +
       (SELECT count(*) FROM {schema}.obs_feed_event o WHERE o.event_id = ANY ($11::uuid[]))`
)

// storeSQL stores the events $11 to $21, moves the positions of the streams $7 to $8 to $10, and
// returns how many rows allow it: none when another session than $4 has claimed the sink, or the
// positions of the streams $5 do not have the digests $6. It divides by zero when a trigger or a
// rule has kept an event out, so that nothing is stored.
const storeSQL = `
WITH claim AS MATERIALIZED (
  SELECT f.sink
    FROM {schema}.obs_feed f
   WHERE f.sink = $1::text AND f.stream = '' AND f.epoch = $3::bigint AND f.event_id = $4::uuid
     AND NOT EXISTS (SELECT FROM unnest($5::text[], $6::uuid[]) AS k (stream, digest)
                      WHERE NOT EXISTS (SELECT FROM {schema}.obs_feed r WHERE r.sink = $1::text AND r.stream = k.stream AND r.digest = k.digest))
     FOR SHARE
), moved AS (
  INSERT INTO {schema}.obs_feed (sink, stream, log, epoch, seq, event_id, digest, updated_at)
  SELECT claim.sink, p.stream, $2::uuid, $3::bigint, p.seq, p.event_id, p.digest, clock_timestamp()
    FROM claim, unnest($7::text[], $8::bigint[], $9::uuid[], $10::uuid[]) AS p (stream, seq, event_id, digest)
      ON CONFLICT (sink, stream) DO UPDATE
     SET log = EXCLUDED.log, epoch = EXCLUDED.epoch, seq = EXCLUDED.seq,
         event_id = EXCLUDED.event_id, digest = EXCLUDED.digest, updated_at = EXCLUDED.updated_at
), stored AS (
  INSERT INTO {schema}.obs_feed_event (event_id, sink, stream, seq, type, subject, change, version, time, observed, snapshot, data)
  SELECT e.event_id, claim.sink, e.stream, e.seq, e.type, e.subject, e.change, e.version, e.time, e.observed, e.snapshot, e.data::json
    FROM claim, unnest($11::uuid[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::text[], $17::bigint[],
                       $18::timestamptz[], $19::timestamptz[], $20::boolean[], $21::text[])
         WITH ORDINALITY AS e (event_id, stream, seq, type, subject, change, version, time, observed, snapshot, data, n)
   ORDER BY e.n{repeats}
  RETURNING 1
)
SELECT count(*) / CASE
       WHEN count(*) = 0 OR cardinality($11::uuid[]) <= (SELECT count(*) FROM stored){repeated} THEN 1 ELSE 0 END
  FROM claim`

// positionsSQL returns what is stored last of the streams $2.
const positionsSQL = `
SELECT f.stream, f.log, f.seq, f.event_id, f.digest
  FROM {schema}.obs_feed f
 WHERE f.sink = $1::text AND f.stream = ANY ($2::text[]) AND f.stream <> ''`
