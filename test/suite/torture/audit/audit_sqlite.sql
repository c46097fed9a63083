-- The same witness in a file of SQLite. A trigger knows no transaction here: an
-- event and an act have the number of the step before them, which is that of
-- their own transaction unless a commit was torn; the end of a lease has its term.
CREATE TABLE torture_audit_stream (stream TEXT PRIMARY KEY, lock_key TEXT NOT NULL, ttl_ms INTEGER NOT NULL);

CREATE TABLE torture_audit_step (
  id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,
  old_version INTEGER NOT NULL, new_version INTEGER NOT NULL, old_low TEXT NOT NULL, new_low TEXT NOT NULL,
  old_seq INTEGER NOT NULL, new_seq INTEGER NOT NULL, definition TEXT NOT NULL, accepted INTEGER NOT NULL,
  all_read INTEGER NOT NULL, commit_id TEXT NOT NULL, at TEXT NOT NULL, node TEXT NOT NULL, holder TEXT NOT NULL, holder_term TEXT NOT NULL, expired INTEGER NOT NULL,
  xid TEXT GENERATED ALWAYS AS (CAST(id AS TEXT))
);
CREATE TABLE torture_audit_lease (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, old_term TEXT NOT NULL, new_term TEXT NOT NULL,
  at TEXT NOT NULL, node TEXT NOT NULL, old_touched TEXT, new_touched TEXT, xid TEXT GENERATED ALWAYS AS ('end of ' || old_term)
);
CREATE TABLE torture_audit_granted (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, term TEXT NOT NULL, fence INTEGER NOT NULL,
  node TEXT NOT NULL, at TEXT NOT NULL, ttl_ms INTEGER NOT NULL, liveness TEXT NOT NULL, xid TEXT GENERATED ALWAYS AS ('end of ' || term)
);
CREATE TABLE torture_audit_guarded (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, mode TEXT NOT NULL, term TEXT NOT NULL, fence INTEGER NOT NULL,
  node TEXT NOT NULL, ttl_ms INTEGER NOT NULL, kind TEXT NOT NULL, trusted INTEGER NOT NULL,
  began TEXT NOT NULL, at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now'))
);
CREATE TABLE torture_audit_turn (
  id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, turn TEXT NOT NULL, node TEXT NOT NULL, outcome TEXT NOT NULL, at TEXT NOT NULL
);
CREATE TABLE torture_audit_event (stream TEXT NOT NULL, seq INTEGER NOT NULL, xid TEXT NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
CREATE TABLE torture_audit_act (id INTEGER PRIMARY KEY, xid TEXT NOT NULL);

CREATE TRIGGER torture_audit_step AFTER UPDATE ON obs_cursor
WHEN (OLD.version, OLD.low_ts, OLD.last_seq) IS NOT (NEW.version, NEW.low_ts, NEW.last_seq)
BEGIN
  INSERT INTO torture_audit_step (stream, old_version, new_version, old_low, new_low, old_seq, new_seq, definition, accepted, all_read, commit_id, at, node,
                                  holder, holder_term, expired)
  SELECT NEW.stream, OLD.version, NEW.version, OLD.low_ts, NEW.low_ts, OLD.last_seq, NEW.last_seq, NEW.definition,
         coalesce(nullif(NEW.accepted, '') ->> 'rows', 0),
         EXISTS (SELECT 1 FROM obs_generation g WHERE g.stream_id = NEW.stream_id AND g.complete AND g.finished_at IS NULL),
         coalesce(NEW.commit_id, ''), strftime('%Y-%m-%d %H:%M:%f000', 'now'), torture_writer(),
         coalesce(o.node, ''), coalesce(l.client_id, ''),
         coalesce(l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', s.ttl_ms / 1000.0)), 0)
    FROM torture_audit_stream s
    LEFT JOIN int_lock l ON l.lock_key = s.lock_key
    LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   WHERE s.stream = NEW.stream;
END;

-- A commit writes how far a reading has come after the step.
CREATE TRIGGER torture_audit_read AFTER INSERT ON obs_generation
BEGIN
  UPDATE torture_audit_step SET all_read = NEW.complete AND NEW.finished_at IS NULL WHERE id = (SELECT max(id) FROM torture_audit_step);
END;
CREATE TRIGGER torture_audit_read_on AFTER UPDATE ON obs_generation
BEGIN
  UPDATE torture_audit_step SET all_read = NEW.complete AND NEW.finished_at IS NULL WHERE id = (SELECT max(id) FROM torture_audit_step);
END;
CREATE TRIGGER torture_audit_read_anew AFTER DELETE ON obs_generation
BEGIN
  UPDATE torture_audit_step SET all_read = 0 WHERE id = (SELECT max(id) FROM torture_audit_step);
END;

-- General locks are judged by what was written under them.
CREATE TRIGGER torture_audit_inserted AFTER INSERT ON int_lock WHEN NEW.region <> 'LOCKS'
BEGIN
  INSERT INTO torture_audit_lease (key, old_term, new_term, at, node, new_touched)
  VALUES (NEW.lock_key, '', NEW.client_id, strftime('%Y-%m-%d %H:%M:%f000', 'now'), torture_writer(), NEW.created_date);
END;
CREATE TRIGGER torture_audit_updated AFTER UPDATE ON int_lock WHEN NEW.region <> 'LOCKS'
BEGIN
  INSERT INTO torture_audit_lease (key, old_term, new_term, at, node, old_touched, new_touched)
  VALUES (NEW.lock_key, OLD.client_id, NEW.client_id, strftime('%Y-%m-%d %H:%M:%f000', 'now'), torture_writer(), OLD.created_date, NEW.created_date);
END;
CREATE TRIGGER torture_audit_deleted AFTER DELETE ON int_lock WHEN OLD.region <> 'LOCKS'
BEGIN
  INSERT INTO torture_audit_lease (key, old_term, new_term, at, node, old_touched)
  VALUES (OLD.lock_key, OLD.client_id, '', strftime('%Y-%m-%d %H:%M:%f000', 'now'), torture_writer(), OLD.created_date);
END;

CREATE TRIGGER torture_audit_granted AFTER INSERT ON obs_lock WHEN NEW.region <> 'LOCKS'
BEGIN
  INSERT INTO torture_audit_granted (key, term, fence, node, at, ttl_ms, liveness)
  VALUES (NEW.lock_key, NEW.term, NEW.fence, NEW.node, strftime('%Y-%m-%d %H:%M:%f000', 'now'), NEW.ttl_ms, NEW.liveness);
END;
CREATE TRIGGER torture_audit_granted_again AFTER UPDATE ON obs_lock WHEN NEW.region <> 'LOCKS'
BEGIN
  INSERT INTO torture_audit_granted (key, term, fence, node, at, ttl_ms, liveness)
  VALUES (NEW.lock_key, NEW.term, NEW.fence, NEW.node, strftime('%Y-%m-%d %H:%M:%f000', 'now'), NEW.ttl_ms, NEW.liveness);
END;

CREATE TRIGGER torture_audit_turn AFTER INSERT ON obs_schedule
BEGIN
  INSERT INTO torture_audit_turn (type, turn, node, outcome, at)
  VALUES (NEW.type, NEW.turn_at, NEW.last_node, NEW.last_outcome, strftime('%Y-%m-%d %H:%M:%f000', 'now'));
END;
CREATE TRIGGER torture_audit_turn_again AFTER UPDATE ON obs_schedule
BEGIN
  INSERT INTO torture_audit_turn (type, turn, node, outcome, at)
  VALUES (NEW.type, NEW.turn_at, NEW.last_node, NEW.last_outcome, strftime('%Y-%m-%d %H:%M:%f000', 'now'));
END;

CREATE TRIGGER torture_audit_event AFTER INSERT ON obs_event
BEGIN
  INSERT INTO torture_audit_event (stream, seq, xid)
  VALUES (NEW.stream, NEW.seq, coalesce((SELECT max(id) FROM torture_audit_step), ''));
END;

-- A resumption moves no version, and so has no step of its own.
CREATE TRIGGER torture_audit_act AFTER INSERT ON obs_audit WHEN NEW.action <> 'resume'
BEGIN
  INSERT INTO torture_audit_act (id, xid) VALUES (NEW.id, coalesce((SELECT max(id) FROM torture_audit_step), ''));
END;
