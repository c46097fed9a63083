-- Clock
EXPLAIN
SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now');

-- Server
EXPLAIN
SELECT sqlite_version();

-- Journal
EXPLAIN
PRAGMA journal_mode;

-- Table
EXPLAIN
SELECT lower(name) FROM pragma_table_info('int_lock');

-- Locks
EXPLAIN
SELECT l.lock_key, l.region, l.client_id, l.created_date, NULL, strftime('%Y-%m-%d %H:%M:%f000', 'now'), o.name, o.node, o.ttl_ms
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id;

-- BareLocks
EXPLAIN
SELECT lock_key, region, client_id, created_date, NULL, strftime('%Y-%m-%d %H:%M:%f000', 'now'), NULL, NULL, NULL FROM int_lock;

-- Acquisitions
EXPLAIN
SELECT lock_key, region, name, node, ttl_ms, acquired_at FROM obs_lock ORDER BY region, lock_key;

-- Members
EXPLAIN
SELECT boot_id, name, version, config_hash, types, unreachable, sinks, started_at, seen_at, liveness
  FROM obs_node
 WHERE seen_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
 ORDER BY name, boot_id;

-- Turns
EXPLAIN
SELECT type, turn_at, last_node, last_outcome FROM obs_schedule ORDER BY type;

-- Beyond
EXPLAIN
SELECT o.sink, o.stream, o.last_seq, c.last_seq
  FROM obs_sink_offset o
  JOIN obs_cursor c ON c.stream = o.stream
 WHERE o.last_seq > c.last_seq
 ORDER BY o.sink, o.stream;

-- Pauses
EXPLAIN
SELECT stream, paused_at, paused_until, paused_by, pause_reason
  FROM obs_cursor
 WHERE paused AND (paused_until IS NULL OR paused_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))
 ORDER BY stream;

-- Poison
EXPLAIN
SELECT d.stream, d.reason, count(*), c.last_seq = 0
  FROM obs_dead d
  JOIN obs_cursor c ON c.stream = d.stream
 GROUP BY d.stream, d.reason, c.last_seq
 ORDER BY d.stream, count(*) DESC, d.reason;

