-- What observerd needs on a PostgreSQL database that it reads, and nothing more.
-- Run it as the owner of the tables, or a superuser, in the database itself, after the
-- tables were created:
--
--   psql -v reader=observerd -v password=… -v schema=wms -f postgres.sql DATABASE
--
-- The tests of the source run this very file.

-- An account of its own: its sessions are read-only whatever they are asked, and
-- a DBA can end them, limit them and see them by name in pg_stat_activity.
CREATE ROLE :"reader" LOGIN PASSWORD :'password' CONNECTION LIMIT 20;
ALTER ROLE :"reader" SET default_transaction_read_only = on;

-- The tables. Without this: "permission denied", and the observer stops. For
-- less, grant SELECT on single tables, or on views made for the purpose. This grants
-- it on the tables that exist now. For a table that is created later, repeat the
-- second line, or let its owner grant it beforehand:
--   ALTER DEFAULT PRIVILEGES IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"reader";
GRANT USAGE ON SCHEMA :"schema" TO :"reader";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"reader";

-- Where names without a schema are looked up, operators and functions too: not where
-- others may create some, which would run with the rights of this account. What
-- observerd asks on its own looks nowhere but in pg_catalog; the queries of the
-- observers need this. Name more schemas, such as that of an extension whose types
-- are read, if none but their owners may create there.
ALTER ROLE :"reader" SET search_path = :"schema";

-- Up to PostgreSQL 15 a function in a query may make large objects, even in a
-- transaction that only reads. Where no other program of this database makes any:
--   REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;

-- When the oldest open transaction of any session began. Without this, the
-- horizon is the server's clock less the overlap (a minute, if none is written):
-- a row that is committed later than that after its timestamp is never seen.
GRANT pg_read_all_stats TO :"reader";

-- Who the database is: pg_control_system(), pg_control_checkpoint() and
-- pg_control_recovery(), which everybody may call unless that was revoked. Without them, a database that was
-- restored from a backup looks like the one before.
