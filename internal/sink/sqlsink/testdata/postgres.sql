CREATE TABLE IF NOT EXISTS "public".obs_feed (
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

CREATE TABLE IF NOT EXISTS "public".obs_feed_event (
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

PREPARE "claim" AS
INSERT INTO "public".obs_feed AS f (sink, stream, log, epoch, seq, event_id, digest, updated_at)
SELECT $1::text, '', $2::uuid, $3::bigint, 0, $4::uuid, $4::uuid, clock_timestamp()
 WHERE NOT EXISTS (SELECT FROM "public".obs_feed o WHERE o.sink <> $1::text AND o.stream = '')
    ON CONFLICT (sink, stream) DO UPDATE
   SET log = EXCLUDED.log, epoch = EXCLUDED.epoch, event_id = EXCLUDED.event_id, digest = EXCLUDED.digest, updated_at = EXCLUDED.updated_at
 WHERE f.epoch <= EXCLUDED.epoch OR $5::boolean
RETURNING 1;

PREPARE "claimed" AS
SELECT f.sink, f.epoch, f.event_id
  FROM "public".obs_feed f
 WHERE f.stream = ''
 ORDER BY f.sink = $1::text
 LIMIT 1;

PREPARE "positions" AS
SELECT f.stream, f.log, f.seq, f.event_id, f.digest
  FROM "public".obs_feed f
 WHERE f.sink = $1::text AND f.stream = ANY ($2::text[]) AND f.stream <> '';

PREPARE "store" AS
WITH claim AS MATERIALIZED (
  SELECT f.sink
    FROM "public".obs_feed f
   WHERE f.sink = $1::text AND f.stream = '' AND f.epoch = $3::bigint AND f.event_id = $4::uuid
     AND NOT EXISTS (SELECT FROM unnest($5::text[], $6::uuid[]) AS k (stream, digest)
                      WHERE NOT EXISTS (SELECT FROM "public".obs_feed r WHERE r.sink = $1::text AND r.stream = k.stream AND r.digest = k.digest))
     FOR SHARE
), moved AS (
  INSERT INTO "public".obs_feed (sink, stream, log, epoch, seq, event_id, digest, updated_at)
  SELECT claim.sink, p.stream, $2::uuid, $3::bigint, p.seq, p.event_id, p.digest, clock_timestamp()
    FROM claim, unnest($7::text[], $8::bigint[], $9::uuid[], $10::uuid[]) AS p (stream, seq, event_id, digest)
      ON CONFLICT (sink, stream) DO UPDATE
     SET log = EXCLUDED.log, epoch = EXCLUDED.epoch, seq = EXCLUDED.seq,
         event_id = EXCLUDED.event_id, digest = EXCLUDED.digest, updated_at = EXCLUDED.updated_at
), stored AS (
  INSERT INTO "public".obs_feed_event (event_id, sink, stream, seq, type, subject, change, version, time, observed, snapshot, data)
  SELECT e.event_id, claim.sink, e.stream, e.seq, e.type, e.subject, e.change, e.version, e.time, e.observed, e.snapshot, e.data::json
    FROM claim, unnest($11::uuid[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::text[], $17::bigint[],
                       $18::timestamptz[], $19::timestamptz[], $20::boolean[], $21::text[])
         WITH ORDINALITY AS e (event_id, stream, seq, type, subject, change, version, time, observed, snapshot, data, n)
   ORDER BY e.n
      ON CONFLICT (event_id) DO NOTHING
  RETURNING 1
)
SELECT count(*) / CASE
       WHEN count(*) = 0 OR cardinality($11::uuid[]) <= (SELECT count(*) FROM stored) +
       (SELECT count(*) FROM "public".obs_feed_event o WHERE o.event_id = ANY ($11::uuid[])) THEN 1 ELSE 0 END
  FROM claim;

PREPARE "storeNew" AS
WITH claim AS MATERIALIZED (
  SELECT f.sink
    FROM "public".obs_feed f
   WHERE f.sink = $1::text AND f.stream = '' AND f.epoch = $3::bigint AND f.event_id = $4::uuid
     AND NOT EXISTS (SELECT FROM unnest($5::text[], $6::uuid[]) AS k (stream, digest)
                      WHERE NOT EXISTS (SELECT FROM "public".obs_feed r WHERE r.sink = $1::text AND r.stream = k.stream AND r.digest = k.digest))
     FOR SHARE
), moved AS (
  INSERT INTO "public".obs_feed (sink, stream, log, epoch, seq, event_id, digest, updated_at)
  SELECT claim.sink, p.stream, $2::uuid, $3::bigint, p.seq, p.event_id, p.digest, clock_timestamp()
    FROM claim, unnest($7::text[], $8::bigint[], $9::uuid[], $10::uuid[]) AS p (stream, seq, event_id, digest)
      ON CONFLICT (sink, stream) DO UPDATE
     SET log = EXCLUDED.log, epoch = EXCLUDED.epoch, seq = EXCLUDED.seq,
         event_id = EXCLUDED.event_id, digest = EXCLUDED.digest, updated_at = EXCLUDED.updated_at
), stored AS (
  INSERT INTO "public".obs_feed_event (event_id, sink, stream, seq, type, subject, change, version, time, observed, snapshot, data)
  SELECT e.event_id, claim.sink, e.stream, e.seq, e.type, e.subject, e.change, e.version, e.time, e.observed, e.snapshot, e.data::json
    FROM claim, unnest($11::uuid[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::text[], $17::bigint[],
                       $18::timestamptz[], $19::timestamptz[], $20::boolean[], $21::text[])
         WITH ORDINALITY AS e (event_id, stream, seq, type, subject, change, version, time, observed, snapshot, data, n)
   ORDER BY e.n
  RETURNING 1
)
SELECT count(*) / CASE
       WHEN count(*) = 0 OR cardinality($11::uuid[]) <= (SELECT count(*) FROM stored) THEN 1 ELSE 0 END
  FROM claim;
