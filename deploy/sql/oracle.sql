-- What observerd needs on an Oracle database that it reads, and nothing more.
-- Run it as a DBA in the database itself (the PDB, where there are any):
--
--   sqlplus system@//host/service @oracle.sql OBSERVERD "password" WMS ORDERS
--
-- with the account to create, its password, the schema and a table. The tests of
-- the source run this very file.
DEFINE reader = &1
DEFINE password = &2
DEFINE owner = &3
DEFINE table = &4

-- A profile of its own: a password that was mistyped on one node locks the
-- account for an hour, not for a day, and a forgotten one does not expire over a
-- weekend. observerd tries a refused password once for all nodes together. Each
-- node keeps at most the source's pool-size of sessions (2, up to 4), and gives
-- idle ones back after 5 minutes.
CREATE PROFILE &reader._POLLER LIMIT
  SESSIONS_PER_USER 20
  IDLE_TIME 30
  FAILED_LOGIN_ATTEMPTS 10
  PASSWORD_LOCK_TIME 1/24
  PASSWORD_LIFE_TIME UNLIMITED;

CREATE USER &reader IDENTIFIED BY "&password" PROFILE &reader._POLLER;
GRANT CREATE SESSION TO &reader;

-- One line for each table, or for views made for the purpose. Without it the
-- observer stops and says that the table does not exist. READ came with 12.1;
-- unlike SELECT it allows no lock. Before that: GRANT SELECT ON …
-- Write an overlap for the observer of a view: 5s where it reads tables of this
-- database alone.
GRANT READ ON &owner..&table TO &reader;

-- When the oldest open transaction began. Without this, the horizon is the
-- database's clock less the overlap (a minute, if none is configured): a row
-- that is committed later than that after its timestamp is never seen.
-- GV_$TRANSACTION shows the transactions of all instances and is right for a
-- single one too. Where only V_$TRANSACTION may be granted, V_$INSTANCE must be
-- as well, to show that there are no other instances:
--   GRANT SELECT ON SYS.V_$TRANSACTION TO &reader;
--   GRANT SELECT ON SYS.V_$INSTANCE TO &reader;
GRANT SELECT ON SYS.GV_$TRANSACTION TO &reader;

-- The database's identity. Without this it is known by its name alone, and a
-- database that was restored to an earlier moment is taken for the one before.
GRANT SELECT ON SYS.V_$DATABASE TO &reader;

-- On a standby alone: how far it is behind. Without this the low-water mark does
-- not move, and every poll reads everything again.
--   GRANT SELECT ON SYS.V_$DATAGUARD_STATS TO &reader;
