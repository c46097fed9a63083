-- A witness beside the coordination database: triggers that note each change of
-- the tables on which the promises rest. They live in a schema of their own and
-- only in torture runs.
CREATE SCHEMA torture_audit;

CREATE TABLE torture_audit.stream (stream TEXT PRIMARY KEY, lock_key CHAR(36) NOT NULL, ttl_ms BIGINT NOT NULL);

CREATE TABLE torture_audit.step (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream TEXT NOT NULL,
  old_version BIGINT NOT NULL, new_version BIGINT NOT NULL, old_low TEXT NOT NULL, new_low TEXT NOT NULL,
  old_seq BIGINT NOT NULL, new_seq BIGINT NOT NULL, definition TEXT NOT NULL, accepted BIGINT NOT NULL,
  all_read BOOLEAN NOT NULL, commit_id TEXT NOT NULL, xid TEXT NOT NULL, at TIMESTAMPTZ NOT NULL,
  node TEXT NOT NULL, holder TEXT NOT NULL, holder_term TEXT NOT NULL, expired BOOLEAN NOT NULL
);
CREATE TABLE torture_audit.lease (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL, old_term TEXT NOT NULL, new_term TEXT NOT NULL,
  xid TEXT NOT NULL, at TIMESTAMPTZ NOT NULL, node TEXT NOT NULL, old_touched TIMESTAMP, new_touched TIMESTAMP
);
CREATE TABLE torture_audit.granted (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL, term TEXT NOT NULL, fence BIGINT NOT NULL,
  node TEXT NOT NULL, xid TEXT NOT NULL, at TIMESTAMPTZ NOT NULL, ttl_ms BIGINT NOT NULL, liveness TEXT NOT NULL
);
-- What programs write under general locks; see history.Guarded.
CREATE TABLE torture_audit.guarded (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL, mode TEXT NOT NULL, term TEXT NOT NULL, fence BIGINT NOT NULL,
  node TEXT NOT NULL, ttl_ms BIGINT NOT NULL, kind TEXT NOT NULL, trusted BOOLEAN NOT NULL,
  began TIMESTAMPTZ NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE torture_audit.turn (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type TEXT NOT NULL, turn TIMESTAMPTZ NOT NULL, node TEXT NOT NULL,
  outcome TEXT NOT NULL, at TIMESTAMPTZ NOT NULL
);

-- Who holds the type's lock is looked up when the writer's transaction commits,
-- and in it: it sees what the transaction did to the lease, and what others have
-- committed by then. A commit that copies advances the cursor first, and may
-- sleep before it ends. A lease that the transaction itself has renewed is
-- nobody else's until it ends, however long that takes. The name of a node is
-- that of its connection, which it cannot mistake.
CREATE FUNCTION torture_audit.step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  known torture_audit.stream;
  held  RECORD;
BEGIN
  SELECT * INTO known FROM torture_audit.stream s WHERE s.stream = NEW.stream;
  SELECT l.client_id, o.node,
         l.created_date < (clock_timestamp() AT TIME ZONE 'UTC') - known.ttl_ms * INTERVAL '1 millisecond' AND l.xmin <> pg_current_xact_id()::xid AS expired INTO held
    FROM public.int_lock l
    LEFT JOIN public.obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   WHERE l.lock_key = known.lock_key;
  INSERT INTO torture_audit.step (stream, old_version, new_version, old_low, new_low, old_seq, new_seq, definition, accepted, all_read, commit_id, xid, at, node, holder, holder_term, expired)
  VALUES (NEW.stream, OLD.version, NEW.version, OLD.low_ts, NEW.low_ts, OLD.last_seq, NEW.last_seq, NEW.definition,
          coalesce((nullif(NEW.accepted, '')::json ->> 'rows')::bigint, 0),
          EXISTS (SELECT 1 FROM public.obs_generation g WHERE g.stream_id = NEW.stream_id AND g.complete AND g.finished_at IS NULL),
          coalesce(NEW.commit_id::text, ''),
          pg_current_xact_id()::text, clock_timestamp(), current_setting('application_name'),
          coalesce(held.node, ''), coalesce(rtrim(held.client_id), ''), coalesce(held.expired, FALSE));
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER torture_audit AFTER UPDATE ON public.obs_cursor DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN ((OLD.version, OLD.low_ts, OLD.last_seq) IS DISTINCT FROM (NEW.version, NEW.low_ts, NEW.last_seq))
  EXECUTE FUNCTION torture_audit.step();

-- General locks are judged by what was written under them: a row of INT_LOCK that several
-- share says little of each.
CREATE FUNCTION torture_audit.lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (CASE WHEN TG_OP = 'DELETE' THEN OLD.region ELSE NEW.region END) = 'LOCKS' THEN RETURN NULL; END IF;
  INSERT INTO torture_audit.lease (key, old_term, new_term, xid, at, node, old_touched, new_touched)
  VALUES (rtrim(CASE WHEN TG_OP = 'DELETE' THEN OLD.lock_key ELSE NEW.lock_key END),
          CASE WHEN TG_OP = 'INSERT' THEN '' ELSE rtrim(OLD.client_id) END, CASE WHEN TG_OP = 'DELETE' THEN '' ELSE rtrim(NEW.client_id) END,
          pg_current_xact_id()::text, clock_timestamp(), current_setting('application_name'),
          CASE WHEN TG_OP <> 'INSERT' THEN OLD.created_date END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.created_date END);
  RETURN NULL;
END $$;
CREATE TRIGGER torture_audit AFTER INSERT OR UPDATE OR DELETE ON public.int_lock FOR EACH ROW EXECUTE FUNCTION torture_audit.lease();

CREATE FUNCTION torture_audit.granted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.region = 'LOCKS' THEN RETURN NULL; END IF;
  INSERT INTO torture_audit.granted (key, term, fence, node, xid, at, ttl_ms, liveness)
  VALUES (rtrim(NEW.lock_key), rtrim(NEW.term), NEW.fence, NEW.node, pg_current_xact_id()::text, clock_timestamp(),
          NEW.ttl_ms, NEW.liveness);
  RETURN NULL;
END $$;
CREATE TRIGGER torture_audit AFTER INSERT OR UPDATE ON public.obs_lock FOR EACH ROW EXECUTE FUNCTION torture_audit.granted();

CREATE FUNCTION torture_audit.turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO torture_audit.turn (type, turn, node, outcome, at)
  VALUES (NEW.type, NEW.turn_at, NEW.last_node, NEW.last_outcome, clock_timestamp());
  RETURN NULL;
END $$;
CREATE TRIGGER torture_audit AFTER INSERT OR UPDATE ON public.obs_schedule FOR EACH ROW EXECUTE FUNCTION torture_audit.turn();

-- The triggers run as whoever makes the change.
GRANT USAGE ON SCHEMA torture_audit TO PUBLIC;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA torture_audit TO PUBLIC;
