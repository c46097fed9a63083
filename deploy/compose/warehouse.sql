-- The warehouse that docker-compose.yml observes, made when the server starts
-- for the first time. Add rows with:
--
--   docker compose exec postgres psql -U observerd warehouse

CREATE DATABASE warehouse;
\connect warehouse

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
