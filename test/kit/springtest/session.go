package springtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// The types that pgjdbc names for its parameters. A text is compared with
// CHAR(36) otherwise than a parameter whose type the server finds out: as text,
// without the index.
const (
	unspecified  = 0
	varcharOID   = 1043
	timestampOID = 1114
)

// param is a parameter as pgjdbc sends it.
type param struct {
	text string
	oid  uint32
}

func text(s string) param { return param{s, varcharOID} }

// tx runs f in a transaction of its own connection, as REQUIRES_NEW does.
func (r *Repository) tx(ctx context.Context, begin string, f func(s session) error) error {
	conn, err := r.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open a connection: %w", err)
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		s := session{driver.(*stdlib.Conn).Conn().PgConn(), ctx}
		if _, err := s.exec(begin); err != nil {
			return err
		}
		if err := f(s); err != nil {
			return errors.Join(err, s.rollback())
		}
		// The server answers ROLLBACK where the transaction has failed. The
		// library sees no error in that.
		_, err := s.exec("COMMIT")
		if err != nil {
			return errors.Join(err, s.rollback())
		}
		return nil
	})
}

// session is a connection within a transaction.
type session struct {
	conn *pgconn.PgConn
	ctx  context.Context
}

// exec runs a statement and returns the number of rows, or the one number that
// it selected.
func (s session) exec(statement string, params ...param) (int64, error) {
	values, types := make([][]byte, len(params)), make([]uint32, len(params))
	for i, p := range params {
		values[i], types[i] = []byte(p.text), p.oid
	}
	result := s.conn.ExecParams(s.ctx, statement, values, types, nil, nil).Read()
	if result.Err != nil {
		return 0, result.Err
	}
	if len(result.Rows) == 1 {
		var n int64
		_, err := fmt.Sscan(string(result.Rows[0][0]), &n)
		return n, err
	}
	return result.CommandTag.RowsAffected(), nil
}

// rollback ends a transaction that has failed, if there is one; a connection
// that is lost has none.
func (s session) rollback() error {
	if s.conn.IsClosed() || s.conn.TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 5*time.Second)
	defer cancel()
	return s.conn.ExecParams(ctx, "ROLLBACK", nil, nil, nil, nil).Read().Err
}

func openPool(url string, size int) (*sql.DB, error) {
	pool, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}
