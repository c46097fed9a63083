package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // The driver "sqlite".
)

// book is the table in the coordination database where the program writes.
type book struct {
	db *sql.DB
	// clock is a query for the time as text, and insert the statement that writes a row.
	clock, insert string
}

const columns = "(key, mode, term, fence, node, ttl_ms, kind, trusted, began)"

func openBook(url string) (book, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_txlock=immediate&_pragma=busy_timeout(%d)", path, limit.Milliseconds()))
		return book{
			db: db, clock: `SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now')`,
			insert: `INSERT INTO torture_audit_guarded ` + columns + ` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		}, err
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return book{}, errors.New("the URL in HOLDER_DATABASE cannot be read")
	}
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[name] = fmt.Sprint(limit.Milliseconds())
	}
	return book{
		db: stdlib.OpenDB(*config), clock: `SELECT CAST(clock_timestamp() AS TEXT)`,
		insert: `INSERT INTO torture_audit.guarded ` + columns + ` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, CAST($9 AS TEXT)::timestamptz)`,
	}, nil
}

// inTx runs do in a transaction that begins as a writer. began is the database's time then.
func (b book) inTx(ctx context.Context, do func(ctx context.Context, tx *sql.Tx, began string) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var began string
	if err := tx.QueryRowContext(ctx, b.clock).Scan(&began); err != nil {
		return err
	}
	if err := do(ctx, tx, began); err != nil {
		return err
	}
	return tx.Commit()
}
