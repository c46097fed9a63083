-- The warehouse in the Oracle of docker-compose.yml. setup.sh runs it once, in
-- the schema SHOP. Instants are in UTC, whatever the zone of the database.
CREATE TABLE orders (
  order_id   NUMBER(19) PRIMARY KEY,
  customer   VARCHAR2(40) NOT NULL,
  status     VARCHAR2(20) NOT NULL,
  updated_at TIMESTAMP(6) DEFAULT SYS_EXTRACT_UTC(SYSTIMESTAMP) NOT NULL
);
CREATE INDEX orders_updated_at ON orders (updated_at, order_id);

CREATE TABLE inventory (
  warehouse VARCHAR2(20) NOT NULL,
  sku       VARCHAR2(20) NOT NULL,
  quantity  NUMBER(9) NOT NULL,
  PRIMARY KEY (warehouse, sku)
);

CREATE TABLE wes_tasks (
  task_id    NUMBER(19) PRIMARY KEY,
  status     VARCHAR2(20) NOT NULL,
  updated_at TIMESTAMP(6) DEFAULT SYS_EXTRACT_UTC(SYSTIMESTAMP) NOT NULL
);
CREATE INDEX wes_tasks_updated_at ON wes_tasks (updated_at, task_id);

INSERT INTO orders (order_id, customer, status) VALUES (1, 'Ada', 'new');
INSERT INTO orders (order_id, customer, status) VALUES (2, 'Grace', 'new');
INSERT INTO orders (order_id, customer, status) VALUES (3, 'Edsger', 'packed');
INSERT INTO inventory (warehouse, sku, quantity) VALUES ('north', 'bolt', 120);
INSERT INTO inventory (warehouse, sku, quantity) VALUES ('north', 'nut', 80);
INSERT INTO inventory (warehouse, sku, quantity) VALUES ('south', 'bolt', 7);
INSERT INTO wes_tasks (task_id, status) VALUES (1, 'waiting');
INSERT INTO wes_tasks (task_id, status) VALUES (2, 'running');
COMMIT;
