-- What people and dashboards ask of the locks. The table is created empty. An older binary
-- notes no failures.

-- +goose Up
-- Acquisitions that failed because another had the lock, by its key and by what the caller
-- wanted to do. The processes add to it every few seconds.
CREATE TABLE obs_lock_failure (
  lock_key  CHAR(36)     NOT NULL,
  region    VARCHAR(100) NOT NULL,
  predicate TEXT         NOT NULL,
  subject   TEXT         NOT NULL,
  name      TEXT         NOT NULL,
  failures  BIGINT       NOT NULL,
  first_at  TIMESTAMPTZ  NOT NULL,
  last_at   TIMESTAMPTZ  NOT NULL,
  PRIMARY KEY (lock_key, region, predicate)
) WITH (fillfactor = 50);

-- The views, and what they read INT_LOCK by: a view that named it would keep its owner from
-- changing it. All is made without the search_path, in which others may have planted
-- operators, and the function has none but pg_catalog, and the rights of its caller.
-- +goose StatementBegin
DO $$
DECLARE
  path  TEXT := pg_catalog.current_setting('search_path');
  ours  TEXT := pg_catalog.quote_ident(pg_catalog.current_schema());
  -- The path has the schema of INT_LOCK last. One that is in ours too is not the nodes'.
  locks TEXT := (SELECT pg_catalog.quote_ident(n.nspname)
                   FROM pg_catalog.unnest(pg_catalog.current_schemas(FALSE)) WITH ORDINALITY AS p (name, n)
                   JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) p.name
                   JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid AND c.relname OPERATOR(pg_catalog.=) 'int_lock'
                  ORDER BY p.n USING OPERATOR(pg_catalog.>)
                  LIMIT 1);
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog', TRUE);
  EXECUTE replace(replace($function$
    CREATE FUNCTION {ours}.obs_int_lock() RETURNS TABLE (lock_key TEXT, region TEXT, client_id TEXT, touched_at TIMESTAMPTZ)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    BEGIN
      RETURN QUERY SELECT rtrim(l.lock_key::text), l.region::text, rtrim(l.client_id::text), l.created_date AT TIME ZONE 'UTC' FROM {locks}.int_lock l;
    END
    $body$
    $function$, '{ours}', ours), '{locks}', coalesce(locks, ours));

  -- One row for each holder whose lease is not over, of all locks that have a descriptor.
  -- The pollers' have the subject observer; locks of sinks and of the janitor have none.
  EXECUTE replace($view$
    CREATE VIEW {ours}.obs_active_locks AS
    SELECT region, name,
           replace(replace(split_part(descriptor, ':', 3), '%3A', ':'), '%25', '%') AS subject,
           replace(replace(split_part(descriptor, ':', 4), '%3A', ':'), '%25', '%') AS predicate,
           mode, node, term, fence, acquired_at, ttl_ms,
           (extract(epoch FROM clock_timestamp() - acquired_at) * 1000)::bigint AS age_ms,
           ttl_ms - (extract(epoch FROM clock_timestamp() - touched_at) * 1000)::bigint AS left_ms
      FROM (
        SELECT o.region, o.name, o.descriptor, 'exclusive' AS mode, o.node, o.term, o.fence, o.acquired_at, o.ttl_ms, l.touched_at
          FROM {ours}.obs_lock o
          JOIN {ours}.obs_int_lock() l ON l.lock_key = o.lock_key::text AND l.region = o.region::text AND l.client_id = o.term::text
         WHERE o.group_term <> o.term
        UNION ALL
        SELECT h.region, h.name, h.descriptor, h.mode, h.node, h.term, h.fence, h.acquired_at, h.ttl_ms, h.touched_at
          FROM {ours}.obs_hold h
          JOIN {ours}.obs_int_lock() l ON l.lock_key = h.lock_key::text AND l.region = h.region::text AND l.client_id = h.group_term::text
      ) held
     WHERE descriptor LIKE 'lock:%'
       AND touched_at BETWEEN clock_timestamp() - make_interval(secs => ttl_ms / 1000.0) AND clock_timestamp() + make_interval(secs => ttl_ms / 500.0)
    $view$, '{ours}', ours);

  -- One row for each lock, by what is done under it: who holds it, who waits, and who did
  -- not get it. Those who wait count for the predicate of the last one who had the lock.
  EXECUTE replace($view$
    CREATE VIEW {ours}.obs_lock_stats AS
    SELECT region, name, subject, predicate,
           sum(active)::bigint AS active, avg(ttl_ms)::bigint AS average_ttl_ms, max(age_ms) AS oldest_ms,
           sum(waiting)::bigint AS waiting, sum(failures)::bigint AS failures, min(first_at) AS first_failed_at, max(last_at) AS last_failed_at
      FROM (
        SELECT region, name, subject, predicate, 1 AS active, ttl_ms, age_ms, 0 AS waiting, 0::bigint AS failures,
               NULL::timestamptz AS first_at, NULL::timestamptz AS last_at
          FROM {ours}.obs_active_locks
        UNION ALL
        SELECT region, name, subject, predicate, 0, NULL, NULL, 0, failures, first_at, last_at
          FROM {ours}.obs_lock_failure
        UNION ALL
        SELECT o.region, o.name, replace(replace(split_part(o.descriptor, ':', 3), '%3A', ':'), '%25', '%'),
               replace(replace(split_part(o.descriptor, ':', 4), '%3A', ':'), '%25', '%'), 0, NULL, NULL, 1, 0, NULL, NULL
          FROM {ours}.obs_wait w
          JOIN {ours}.obs_lock o ON o.lock_key = w.lock_key AND o.region = w.region
         WHERE o.descriptor LIKE 'lock:%' AND w.touched_at BETWEEN clock_timestamp() - interval '5 seconds' AND clock_timestamp() + interval '10 seconds'
      ) figures
     GROUP BY region, name, subject, predicate
    $view$, '{ours}', ours);
  PERFORM set_config('search_path', path, TRUE);
END
$$;
-- +goose StatementEnd
