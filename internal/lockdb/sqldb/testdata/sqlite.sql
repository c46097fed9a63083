-- Table.Now
EXPLAIN
SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now');

