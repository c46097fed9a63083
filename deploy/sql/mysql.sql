-- What observerd needs on a MySQL (5.7 or newer) or MariaDB (10.3 or newer) that
-- it reads. Run it as an administrator, with the names and the password of your
-- own: the account observerd, the database shop, the tables orders and stock.

-- Narrow '%' down to the hosts of the nodes. The account reads alone, so it needs
-- none of the rights that a program of the shop has. The limit of connections
-- holds for all nodes together: each takes as many as the source's pool is
-- large, and one more for a moment to end a statement that took too long.
CREATE USER 'observerd'@'%' IDENTIFIED BY 'change-me'
  WITH MAX_USER_CONNECTIONS 20;

-- The tables and views that observers name, and no others.
--   Without it: the observer of that table stops, and says which right it lacks.
-- A right to some columns alone, as GRANT SELECT (order_id, updated_at) ON …, is
-- enough where the observer names its columns. MariaDB then does not tell which
-- of them are JSON: those arrive as text.
GRANT SELECT ON `shop`.`orders` TO 'observerd'@'%';
GRANT SELECT ON `shop`.`stock` TO 'observerd'@'%';

-- The open transactions and running statements of all accounts, from which the
-- horizon is known: the instant before which no more rows will appear.
--   Without it: rows that commit late are waited for by the overlap alone
--   (1 minute unless the observer sets one), and those that commit later than
--   that are found by the reconcile sweep, not by a poll.
-- The right also shows the text of the statements of others, which observerd
-- does not read.
GRANT PROCESS ON *.* TO 'observerd'@'%';

-- Only where observerd reads a replica, to know how far it is behind.
--   Without it: the overlap has to be longer than the greatest delay.
-- MariaDB 10.5 and newer:
--   GRANT SLAVE MONITOR ON *.* TO 'observerd'@'%';
-- MySQL, and MariaDB before that:
--   GRANT REPLICATION CLIENT ON *.* TO 'observerd'@'%';

-- Only on MySQL 8 and newer, and only where programs use two-phase (XA)
-- transactions: to tell one that was left open from the server's own work.
--   Without it: the horizon stands still while either is there.
--   GRANT XA_RECOVER_ADMIN ON *.* TO 'observerd'@'%';
