package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/source/mysql"
)

// mariadbOrigin is a database of its own on a throw-away MariaDB.
type mariadbOrigin struct {
	db      *sql.DB
	where   string
	version string
}

func openMariaDB(ctx context.Context, s *suite) (origin, error) {
	o := &mariadbOrigin{}
	name := "bench_" + strings.ToLower(rand.Text())
	if err := o.make(ctx, s.maria, name); err != nil {
		o.close()
		return nil, fmt.Errorf("make a database of MariaDB: %w", err)
	}
	return o, nil
}

func (o *mariadbOrigin) make(ctx context.Context, admin, name string) error {
	first, err := openMariaDBDriver(admin)
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	if _, err := first.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	parsed, err := url.Parse(admin)
	if err != nil {
		return err
	}
	parsed.Path = "/" + name
	o.where = parsed.String()
	if o.db, err = openMariaDBDriver(o.where); err != nil {
		return err
	}
	return o.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&o.version)
}

func (*mariadbOrigin) kind() string  { return kindMariaDB }
func (o *mariadbOrigin) url() string { return o.where }

func (o *mariadbOrigin) name() string {
	version, _, _ := strings.Cut(o.version, "-")
	return "MariaDB " + version
}

// mariadbColumns have the index that polling by a timestamp wants.
const mariadbColumns = ` (
  id         bigint PRIMARY KEY,
  customer   varchar(60) NOT NULL,
  status     varchar(60) NOT NULL,
  total      decimal(12, 2) NOT NULL,
  note       varchar(400) NOT NULL,
  updated_at datetime(6) NOT NULL,
  KEY updated (updated_at, id)
) ENGINE = InnoDB CHARACTER SET utf8mb4`

// mariadbOrders are the orders of ordersSQL.
const mariadbOrders = `
SELECT 1000000 + seq,
       CONCAT('customer ', seq * 7919 %% 50000),
       ELT(1 + seq %% 4, 'NEW', 'RELEASED', 'PICKED', 'SHIPPED'),
       (seq * 31 %% 1000000) / 100.0,
       LEFT(REPEAT(CONCAT(MD5(seq), ' '), 9), 120 + seq * 13 %% 160),
       TIMESTAMP '2026-01-01 00:00:00' + INTERVAL seq * 7000 MICROSECOND
  FROM seq_1_to_%d`

func (o *mariadbOrigin) fill(ctx context.Context, sizes []int) error {
	for _, rows := range sizes {
		table := tableOf(rows)
		for _, statement := range []string{
			"CREATE TABLE " + table + mariadbColumns,
			"INSERT INTO " + table + fmt.Sprintf(mariadbOrders, rows),
		} {
			if _, err := o.db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("fill %s: %w", table, err)
			}
		}
		// It answers with rows.
		if err := o.db.QueryRowContext(ctx, "ANALYZE TABLE "+table).Err(); err != nil {
			return fmt.Errorf("analyse %s: %w", table, err)
		}
	}
	return nil
}

func (o *mariadbOrigin) counted(ctx context.Context) (counted, error) {
	return countRequests(ctx, o.where)
}

// close drops the database. What cannot be dropped goes with the server.
func (o *mariadbOrigin) close() {
	if o.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = o.db.ExecContext(ctx, "DROP DATABASE "+strings.TrimPrefix(pathOf(o.where), "/"))
		_ = o.db.Close()
	}
}

func pathOf(where string) string {
	parsed, err := url.Parse(where)
	if err != nil {
		return ""
	}
	return parsed.Path
}

// openMariaDBDriver opens the bare driver.
func openMariaDBDriver(where string) (*sql.DB, error) {
	parsed, err := url.Parse(where)
	if err != nil {
		return nil, err
	}
	config := driver.NewConfig()
	config.User = parsed.User.Username()
	config.Passwd, _ = parsed.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", parsed.Host, strings.TrimPrefix(parsed.Path, "/")
	config.ParseTime = true
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func openMariaDBSource(where string) (pollable, error) {
	return mysql.Open(mysql.Options{URL: where})
}

// loopMariaDB is the bare loop over go-sql-driver.
func loopMariaDB(ctx context.Context, where, table string, watch *stopwatch) (int64, error) {
	db, err := openMariaDBDriver(where)
	if err != nil {
		return 0, err
	}
	return loopSQL(ctx, db, table, watch)
}
