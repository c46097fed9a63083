#!/bin/bash
# Keeps the warehouse of docker-compose.yml's Oracle moving: a round of
# traffic.sql, whose last statement commits, and a rest. When a round fails this
# ends, and is started again.
set -euo pipefail

while true; do
  sqlplus -S -L /nolog <<SQL
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
SET FEEDBACK OFF
CONNECT SHOP/"${SHOP_PASSWORD}"@//oracle:1521/FREEPDB1
@/sql/traffic.sql
EXIT
SQL
  sleep 3
done
