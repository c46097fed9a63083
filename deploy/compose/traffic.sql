-- What goes on in the warehouse while observerd looks on: one round every two
-- seconds, each a transaction, until the container is stopped.
\set ON_ERROR_STOP on

INSERT INTO orders (customer, status)
SELECT (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald'])[1 + floor(random() * 5)::int], 'new' \;

UPDATE orders
SET status = CASE status WHEN 'new' THEN 'packed' ELSE 'shipped' END,
    updated_at = clock_timestamp() AT TIME ZONE 'UTC'
WHERE order_id IN (SELECT order_id FROM orders WHERE status <> 'shipped' ORDER BY updated_at LIMIT 2) \;

UPDATE inventory
SET quantity = CASE WHEN quantity < 20 THEN quantity + 100 ELSE quantity - 1 - floor(random() * 9)::int END
WHERE (warehouse, sku) IN (SELECT warehouse, sku FROM inventory ORDER BY random() LIMIT 1) \;

INSERT INTO wes_tasks (status) VALUES ('waiting') \;

UPDATE wes_tasks
SET status = CASE status WHEN 'waiting' THEN 'running' ELSE 'done' END,
    updated_at = clock_timestamp() AT TIME ZONE 'UTC'
WHERE task_id IN (SELECT task_id FROM wes_tasks WHERE status <> 'done' ORDER BY updated_at LIMIT 2) \;

-- A demonstration that is forgotten over the holidays should not fill the disk.
DELETE FROM orders WHERE updated_at < clock_timestamp() AT TIME ZONE 'UTC' - INTERVAL '1 day' \;
DELETE FROM wes_tasks WHERE updated_at < clock_timestamp() AT TIME ZONE 'UTC' - INTERVAL '1 day'
\watch 2
