-- What docker-compose.yml needs in its PostgreSQL, made when the server starts
-- for the first time: a database for observerd's memory, the warehouse that it
-- observes, and an account for each who comes in. The passwords are in the
-- environment of the container.
--
-- Look around with:
--
--   docker compose exec postgres psql -U postgres warehouse

\getenv observerd_password DATABASE_PASSWORD
\getenv shop_password SHOP_PASSWORD
\getenv reader_password WAREHOUSE_PASSWORD
\getenv migrate_password MIGRATE_PASSWORD
\getenv read_password DASHBOARD_PASSWORD

-- observerd's own, with the schema and the roles that deploy/sql makes for any such
-- database. The service migrate makes the tables.
CREATE DATABASE observerd;
\connect observerd
\set schema observerd
\set migrate observerd_migrate
\set app observerd
\set app_password :observerd_password
\set read observerd_read
\ir ../sql/coordination.sql

-- The shop's: whoever fills the warehouse. See traffic.sql.
CREATE ROLE shop LOGIN PASSWORD :'shop_password';
CREATE DATABASE warehouse OWNER shop;
\connect warehouse
SET ROLE shop;

CREATE TABLE orders (
  order_id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer   TEXT NOT NULL,
  status     TEXT NOT NULL,
  updated_at TIMESTAMP NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')
);
CREATE INDEX orders_updated_at ON orders (updated_at, order_id);

CREATE TABLE inventory (
  warehouse TEXT NOT NULL,
  sku       TEXT NOT NULL,
  quantity  INTEGER NOT NULL,
  PRIMARY KEY (warehouse, sku)
);

CREATE TABLE wes_tasks (
  task_id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  status     TEXT NOT NULL,
  updated_at TIMESTAMP NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')
);
CREATE INDEX wes_tasks_updated_at ON wes_tasks (updated_at, task_id);

INSERT INTO orders (customer, status) VALUES ('Ada', 'new'), ('Grace', 'new'), ('Edsger', 'packed');
INSERT INTO inventory VALUES ('north', 'bolt', 120), ('north', 'nut', 80), ('south', 'bolt', 7);
INSERT INTO wes_tasks (status) VALUES ('waiting'), ('running');

-- The account that observes, with what deploy/sql grants to any such account and
-- nothing more.
RESET ROLE;
\set reader reader
\set password :reader_password
\set schema public
\ir ../sql/postgres.sql
