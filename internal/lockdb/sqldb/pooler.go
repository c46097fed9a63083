package sqldb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/status"
)

// atStart are the settings that PgBouncer lets a session begin with, in all
// versions, and options, which cannot be set later. It ends a session that asks for
// any other; those are set afterwards.
var atStart = []string{"application_name", "client_encoding", "datestyle", "options", "standard_conforming_strings", "timezone"}

// Pooler knows whether a connection pooler stands before the server, and gives each
// new connection its settings, where they stay with it.
//
// The server names its process in the login, and pg_backend_pid() names the one that
// answers: they differ behind a pooler, which answers the login itself. How it shares
// out the sessions of the server is learned once, from the first such connection:
//
//   - A pooler that tracks prepared statements gives them names of its own, and
//     PgBouncer does so in transaction mode alone. That is seen within one transaction.
//   - Otherwise two connections, both open, ask in turns for the process that serves
//     them. In session mode each has its own, always the same. In transaction mode a
//     pool at rest serves both by the session that was returned last, or, with
//     server_round_robin, one of them by several.
//
// That can err in a pool that others of this role and database use at the same
// time, or where several poolers share one port. The liveness, which looks four
// times a second, notices such a mistake later: then the node is not ready.
type Pooler struct {
	log *slog.Logger
	// another opens one more connection, which has no settings.
	another func(ctx context.Context) (*pgconn.PgConn, error)
	// own are the settings that the URL asks for.
	own []string
	// place is asked for by the first connection.
	place *place
	// tolerant is for the doctor, whose connections prepare no statements.
	tolerant bool
	turn     chan struct{} // to look
	looked   bool
	found    atomic.Int32 // a [status.Pooling]
}

// newPooler is for connections to the server of the configuration, whose settings are
// still those of the URL.
func newPooler(config *pgx.ConnConfig, log *slog.Logger) *Pooler {
	plain, settings := split(config)
	return &Pooler{
		log: log, own: slices.Sorted(maps.Keys(settings)), turn: make(chan struct{}, 1), place: &place{renderings: newRenderings(postgresDialect())},
		another: func(ctx context.Context) (*pgconn.PgConn, error) { return pgconn.ConnectConfig(ctx, &plain.Config) },
	}
}

// split moves the settings for after the login out of a copy of the configuration.
func split(config *pgx.ConnConfig) (plain *pgx.ConnConfig, settings map[string]string) {
	plain, settings = config.Copy(), map[string]string{}
	for name, value := range config.RuntimeParams {
		if !slices.Contains(atStart, strings.ToLower(name)) {
			settings[name] = value
			delete(plain.RuntimeParams, name)
		}
	}
	return plain, settings
}

// Pooling is the result so far.
func (p *Pooler) Pooling() status.Pooling { return status.Pooling(p.found.Load()) }

// through returns the configuration for connections that get their settings once
// they are there. Their search_path is Pinned; see [place].
func (p *Pooler) through(config *pgx.ConnConfig) *pgx.ConnConfig {
	return p.on(config, func() string { return Pinned })
}

// on is through for sessions with another search_path, which is asked for once the
// tables are found.
func (p *Pooler) on(config *pgx.ConnConfig, path func() string) *pgx.ConnConfig {
	plain, settings := split(config)
	asked := settings["search_path"]
	check := plain.ValidateConnect
	plain.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		pooling, err := p.look(ctx, conn)
		switch {
		case err != nil:
			return err
		case pooling.Shared():
			// A setting would stay for other clients.
			if err = p.unfit(); err == nil {
				err = p.place.learn(ctx, conn, "")
			}
		default:
			if err = p.place.learn(ctx, conn, asked); err == nil {
				err = set(ctx, conn, settings, path())
			}
		}
		if err == nil && check != nil {
			err = check(ctx, conn)
		}
		return err
	}
	return plain
}

// prepares reports whether statements may be prepared in sessions that keep their settings.
func (p *Pooler) prepares() bool { return !p.tolerant && !p.Pooling().Shared() }

// unfit says why no node can work behind this pooler; nil when one can.
func (p *Pooler) unfit() error {
	switch pooling := p.Pooling(); {
	case pooling == status.PooledUnprepared && !p.tolerant:
		return fmt.Errorf("%w, and mixes up the prepared statements of its clients; use PgBouncer 1.21 or newer with max_prepared_statements above 0, or session mode", ErrPooler)
	case pooling.Shared() && len(p.own) > 0:
		return fmt.Errorf("%w, and a session keeps no settings: take %s out of database.url and use ALTER ROLE … SET, or use session mode", ErrPooler, strings.Join(p.own, ", "))
	}
	return nil
}

// look learns how the connection comes by its session of the server.
func (p *Pooler) look(ctx context.Context, conn *pgconn.PgConn) (status.Pooling, error) {
	backend, err := backendOf(ctx, conn)
	if err != nil || backend == strconv.FormatUint(uint64(conn.PID()), 10) {
		return status.Unpooled, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return status.Unpooled, context.Cause(ctx)
	}
	if p.looked {
		return p.Pooling(), nil
	}
	pooling, err := p.mode(ctx, conn)
	if err != nil {
		return status.Unpooled, err
	}
	p.looked = true
	p.found.Store(int32(pooling))
	if pooling == status.PooledTransactions {
		p.log.Warn("Connected through a connection pooler in transaction mode: the time limits of statements are those of the role")
	}
	return pooling, nil
}

// NoteShared notes that one connection was served by two sessions of the server.
func (p *Pooler) NoteShared() {
	// One that tracked prepared statements would have been recognised.
	p.found.CompareAndSwap(int32(status.PooledSessions), int32(status.PooledUnprepared))
}

func (p *Pooler) mode(ctx context.Context, conn *pgconn.PgConn) (status.Pooling, error) {
	if tracked, err := tracksStatements(ctx, conn); err != nil || tracked {
		return status.PooledTransactions, err
	}
	other, err := p.another(ctx)
	if err != nil {
		return status.Unpooled, fmt.Errorf("open a second connection: %w", err)
	}
	defer func() { _ = other.Close(ctx) }()
	// Twice in a row and by turns: see [Pooler].
	first := map[*pgconn.PgConn]string{}
	for _, c := range []*pgconn.PgConn{conn, conn, other, other, conn, other} {
		backend, err := backendOf(ctx, c)
		if err != nil {
			return status.Unpooled, err
		}
		if first[c] == "" {
			first[c] = backend
		}
		if backend != first[c] || first[conn] == first[other] {
			return status.PooledUnprepared, nil
		}
	}
	return status.PooledSessions, nil
}

// backendOf is the process of the server that answers, which has to return every text as
// it was written.
func backendOf(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	results, err := conn.Exec(ctx, `SELECT pg_catalog.pg_backend_pid(); SHOW client_encoding; SHOW server_encoding`).ReadAll()
	if err != nil {
		return "", fmt.Errorf("look for a connection pooler: %w", err)
	}
	said := func(n int) string { return string(results[n].Rows[0][0]) }
	return said(0), checkTexts(said(1), said(2))
}

// checkTexts takes the encodings of a session and of its database. One in SQL_ASCII holds
// bytes, which are ours alone.
func checkTexts(session, database string) error {
	if session != pgsession.Encoding {
		return fmt.Errorf("%w: client_encoding is %s in a session that has asked for UTF8; let the connection pooler set what its clients ask for, or use ALTER ROLE … SET client_encoding = 'UTF8'", ErrEncoding, session)
	}
	if database != pgsession.Encoding && database != pgsession.ASCII {
		return fmt.Errorf("%w: its encoding is %s, which lacks characters that sources have; CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that in database.url", ErrEncoding, database)
	}
	return nil
}

// tracksStatements reports whether the server knows a prepared statement by another
// name than its client.
func tracksStatements(ctx context.Context, conn *pgconn.PgConn) (tracks bool, err error) {
	const name = "observerd_probe"
	if _, err := conn.Exec(ctx, `BEGIN`).ReadAll(); err != nil {
		return false, err
	}
	defer func() {
		_, end := conn.Exec(ctx, `ROLLBACK`).ReadAll()
		err = errors.Join(err, end)
	}()
	if _, err := conn.Prepare(ctx, name, `SELECT 1`, nil); err != nil {
		return false, err
	}
	// No transaction takes it back.
	defer func() { err = errors.Join(err, conn.Deallocate(ctx, name)) }()
	known, err := conn.Exec(ctx, `SELECT FROM pg_catalog.pg_prepared_statements WHERE name OPERATOR(pg_catalog.=) '`+name+`'`).ReadAll()
	return err == nil && len(known[0].Rows) == 0, err
}

// set makes settings of the session, and gives it the search_path.
func set(ctx context.Context, conn *pgconn.PgConn, settings map[string]string, path string) error {
	all := map[string]string{"search_path": path}
	for name, value := range settings {
		if name != "search_path" {
			all[name] = value
		}
	}
	var calls []string
	var values [][]byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values = append(values, []byte(name), []byte(all[name]))
		calls = append(calls, fmt.Sprintf("pg_catalog.set_config($%d, $%d, false)", len(values)-1, len(values)))
	}
	return conn.ExecParams(ctx, `SELECT `+strings.Join(calls, ", "), values, nil, nil, nil).Read().Err
}
