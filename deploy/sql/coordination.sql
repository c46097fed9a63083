-- The schema and the roles of observerd in the PostgreSQL that coordinates its nodes.
-- Run it as a superuser or the owner of the database, in the database itself:
--
--   psql -v schema=observerd -v migrate=observerd_migrate -v migrate_password=… \
--        -v app=observerd -v app_password=… -v read=observerd_read -v read_password=… \
--        -f coordination.sql DATABASE
--
-- Then make the tables with the role that migrates, and let the nodes work with the
-- other, which may change rows and nothing else (auto-migrate: false):
--
--   OBSERVERD_DATABASE_URL='postgres://observerd_migrate:…@HOST/DATABASE' observerd migrate up
--
-- The tests of observerd run this very file.

-- The owner of the schema and of all that is in it. Nothing runs with it but
-- 'observerd migrate up'.
CREATE ROLE :"migrate" LOGIN PASSWORD :'migrate_password' CONNECTION LIMIT 10;

-- The nodes. Each takes database.pool-size and five connections more.
CREATE ROLE :"app" LOGIN PASSWORD :'app_password';

-- Dashboards, and people who look: 'observerd status' works with it.
CREATE ROLE :"read" LOGIN PASSWORD :'read_password' CONNECTION LIMIT 10;

-- A schema in which nobody else may create. In one where others may, as in public
-- before PostgreSQL 15, an operator or a function of theirs could run with our rights.
CREATE SCHEMA :"schema" AUTHORIZATION :"migrate";
GRANT USAGE ON SCHEMA :"schema" TO :"app", :"read";
SELECT current_database() AS database \gset
ALTER ROLE :"migrate" IN DATABASE :"database" SET search_path = :"schema";
ALTER ROLE :"app" IN DATABASE :"database" SET search_path = :"schema";
ALTER ROLE :"read" IN DATABASE :"database" SET search_path = :"schema";

-- What is made there later. Where INT_LOCK is that of Java nodes, its owner grants
-- USAGE on its schema and SELECT, INSERT, UPDATE, DELETE on the table besides, and its
-- schema follows in the search_path of the first two.
ALTER DEFAULT PRIVILEGES FOR ROLE :"migrate" IN SCHEMA :"schema" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"app";
ALTER DEFAULT PRIVILEGES FOR ROLE :"migrate" IN SCHEMA :"schema" GRANT USAGE ON SEQUENCES TO :"app";
ALTER DEFAULT PRIVILEGES FOR ROLE :"migrate" IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"read";

-- Behind a connection pooler in transaction mode nodes set no limits for their
-- sessions; the role has them then.
ALTER ROLE :"app" IN DATABASE :"database" SET statement_timeout = '30s';
ALTER ROLE :"app" IN DATABASE :"database" SET lock_timeout = '5s';
ALTER ROLE :"app" IN DATABASE :"database" SET idle_in_transaction_session_timeout = '10s';
