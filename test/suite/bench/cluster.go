package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/testbed"
)

// cluster is the throw-away PostgreSQL cluster; its databases are dropped at
// the end.
type cluster struct {
	conn  *pgx.Conn
	admin *url.URL
	made  []string
}

func openCluster(ctx context.Context, admin string) (*cluster, error) {
	parsed, err := url.Parse(admin)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's URL: %w", err)
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &cluster{conn: conn, admin: parsed}, nil
}

// database makes an empty database and returns its URL.
func (c *cluster) database(ctx context.Context, purpose string) (string, error) {
	name := "bench_" + purpose + "_" + strings.ToLower(rand.Text())
	if _, err := c.conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", fmt.Errorf("make the database for %s: %w", purpose, err)
	}
	c.made = append(c.made, name)
	where := *c.admin
	where.Path = "/" + name
	return where.String(), nil
}

// coordination makes a database with observerd's tables.
func (c *cluster) coordination(ctx context.Context, purpose string) (string, error) {
	where, err := c.database(ctx, purpose)
	if err != nil {
		return "", err
	}
	db, err := openStore(ctx, where)
	if err != nil {
		return "", err
	}
	return where, db.Close()
}

// openStore opens a coordination database as a node does.
func openStore(ctx context.Context, where string) (*lockdb.DB, error) {
	db, err := lockdb.Open(lockdb.Options{URL: where, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	if err := db.Ready(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// sessionCPU is the CPU time of the server's processes that serve these databases, by their ids.
func (c *cluster) sessionCPU(ctx context.Context, databases []string) (map[uint32]time.Duration, error) {
	names := make([]string, len(databases))
	for i, where := range databases {
		parsed, err := url.Parse(where)
		if err != nil {
			return nil, err
		}
		names[i] = strings.TrimPrefix(parsed.Path, "/")
	}
	rows, _ := c.conn.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = ANY ($1)", names) // The error comes with the rows.
	pids, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	used := make(map[uint32]time.Duration, len(pids))
	for _, pid := range pids {
		cpu, err := cpuOf(int(pid))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // The session has ended.
			return nil, err
		}
		used[pid] = cpu
	}
	return used, err
}

// cpu is what the sessions of databases have used so far. Those that have ended do not count.
func (c *cluster) cpu(ctx context.Context, databases ...string) (sum time.Duration, err error) {
	used, err := c.sessionCPU(ctx, databases)
	for _, one := range used {
		sum += one
	}
	return sum, err
}

// checkpoint lets no measurement pay for what another has written.
func (c *cluster) checkpoint(ctx context.Context) error {
	if _, err := c.conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// close drops the databases. What cannot be dropped goes with the cluster.
func (c *cluster) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, name := range c.made {
		_, _ = c.conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}
	_ = c.conn.Close(ctx)
}

// emptyTables makes a coordination database as it was at the beginning.
func emptyTables(ctx context.Context, database string) error {
	err := testbed.Execute(ctx, database, `TRUNCATE obs_event, obs_observed, obs_dead, obs_cursor, int_lock, obs_lock RESTART IDENTITY`)
	if err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	return nil
}
