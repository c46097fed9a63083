SELECT * FROM (SELECT order_id, updated_at FROM orders_date WHERE status = 'late' -- the others do not matter
) q WHERE 1 = 0
/
SELECT /* observerd:late_orders */ q."ORDER_ID", TO_CHAR(q."UPDATED_AT", 'SYYYY-MM-DD HH24:MI:SS') AS "UPDATED_AT"
FROM (SELECT order_id, updated_at FROM orders_date WHERE status = 'late' -- the others do not matter
) q
WHERE q."UPDATED_AT" >= TO_DATE(:1, 'YYYY-MM-DD HH24:MI:SS')
ORDER BY q."UPDATED_AT", q."ORDER_ID"
-- :1 = 2024-05-01 10:00:00
/
ROLLBACK
/
