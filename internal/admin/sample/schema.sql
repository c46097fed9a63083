CREATE TABLE IF NOT EXISTS orders (
  order_id   TEXT PRIMARY KEY NOT NULL,
  customer   TEXT NOT NULL,
  status     TEXT NOT NULL,
  total      NUMERIC NOT NULL,
  updated_at DATETIME NOT NULL
);
CREATE INDEX IF NOT EXISTS orders_updated ON orders (updated_at, order_id);
CREATE INDEX IF NOT EXISTS orders_status ON orders (status);

CREATE TABLE IF NOT EXISTS inventory (
  warehouse TEXT NOT NULL,
  sku       TEXT NOT NULL,
  quantity  INTEGER NOT NULL,
  PRIMARY KEY (warehouse, sku)
);

CREATE TABLE IF NOT EXISTS wes_tasks (
  task_id    TEXT PRIMARY KEY NOT NULL,
  order_id   TEXT NOT NULL REFERENCES orders (order_id),
  status     TEXT NOT NULL,
  updated_at DATETIME NOT NULL
);
CREATE INDEX IF NOT EXISTS wes_tasks_updated ON wes_tasks (updated_at, task_id);
CREATE INDEX IF NOT EXISTS wes_tasks_status ON wes_tasks (status);
CREATE INDEX IF NOT EXISTS wes_tasks_order ON wes_tasks (order_id);
