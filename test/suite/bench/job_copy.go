package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// copied are the tables of the bare COPY.
func copied() []string { return []string{"obs_observed", "obs_event"} }

// copyBacklog is the bare COPY: rows that were encoded before, one stream a
// table, in one transaction.
func copyBacklog(ctx context.Context, j job, watch *stopwatch) (n int64, err error) {
	to, err := pgx.Connect(ctx, j.Database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close(context.WithoutCancel(ctx))) }()
	watch.start()
	defer watch.stop()
	err = pgx.BeginFunc(ctx, to, func(tx pgx.Tx) error {
		for _, table := range copied() {
			if n, err = load(ctx, to, table, j.Folder); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func load(ctx context.Context, to *pgx.Conn, table, folder string) (int64, error) {
	file, err := os.Open(filepath.Join(folder, table))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	tag, err := to.PgConn().CopyFrom(ctx, bufio.NewReaderSize(file, 1<<20), "COPY "+table+" FROM STDIN (FORMAT binary)")
	return tag.RowsAffected(), err
}

// unload writes the tables to files, as COPY will read them.
func unload(ctx context.Context, database, folder string) (err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, table := range copied() {
		if err := unloadTable(ctx, conn, table, folder); err != nil {
			return err
		}
	}
	return nil
}

func unloadTable(ctx context.Context, conn *pgx.Conn, table, folder string) (err error) {
	file, err := os.Create(filepath.Join(folder, table))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = conn.PgConn().CopyTo(ctx, file, "COPY "+table+" TO STDOUT (FORMAT binary)")
	return err
}
