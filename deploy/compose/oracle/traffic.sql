-- What goes on in the warehouse of the Oracle of docker-compose.yml: one round,
-- which traffic.sh repeats as SHOP. Nobody else writes, so the highest number is
-- the last one. An order and a task take two steps each, so two of them take one.
INSERT INTO orders (order_id, customer, status)
SELECT MAX(order_id) + 1, 'Barbara', 'new' FROM orders;

UPDATE orders
SET status = CASE status WHEN 'new' THEN 'packed' ELSE 'shipped' END,
    updated_at = SYS_EXTRACT_UTC(SYSTIMESTAMP)
WHERE order_id IN (SELECT order_id FROM orders WHERE status <> 'shipped' ORDER BY updated_at FETCH FIRST 2 ROWS ONLY);

UPDATE inventory
SET quantity = CASE WHEN quantity < 20 THEN quantity + 100 ELSE quantity - 7 END
WHERE sku = 'bolt';

INSERT INTO wes_tasks (task_id, status)
SELECT MAX(task_id) + 1, 'waiting' FROM wes_tasks;

UPDATE wes_tasks
SET status = CASE status WHEN 'waiting' THEN 'running' ELSE 'done' END,
    updated_at = SYS_EXTRACT_UTC(SYSTIMESTAMP)
WHERE task_id IN (SELECT task_id FROM wes_tasks WHERE status <> 'done' ORDER BY updated_at FETCH FIRST 2 ROWS ONLY);

-- As beside PostgreSQL, nothing fills the disk over the holidays.
DELETE FROM orders WHERE updated_at < SYS_EXTRACT_UTC(SYSTIMESTAMP) - INTERVAL '1' DAY;
DELETE FROM wes_tasks WHERE updated_at < SYS_EXTRACT_UTC(SYSTIMESTAMP) - INTERVAL '1' DAY;
COMMIT;
