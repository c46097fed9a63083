#!/bin/bash
# Run by the image of docker-compose.yml's Oracle when its database is new: fills
# the warehouse of SHOP, an account that the image has made, and makes the account
# that observes it, READER. The last file says that all this is done: before it is,
# nobody should try to log in.
set -euo pipefail

# The account gets what deploy/sql grants to any such account, with one table,
# and then the others. VERIFY would print the password.
sqlplus -S -L / as sysdba <<SQL
WHENEVER SQLERROR EXIT FAILURE
SET VERIFY OFF
ALTER SESSION SET CONTAINER = FREEPDB1;
ALTER SESSION SET CURRENT_SCHEMA = SHOP;
@/sql/warehouse.sql
@/sql/oracle.sql READER "${WAREHOUSE_PASSWORD}" SHOP ORDERS
GRANT READ ON SHOP.INVENTORY TO READER;
GRANT READ ON SHOP.WES_TASKS TO READER;
EXIT
SQL

touch /opt/oracle/oradata/warehouse-is-ready
