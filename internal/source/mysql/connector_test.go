package mysql

import (
	"context"
	"database/sql/driver"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// ends is a gate that counts the logons that have failed.
type ends struct{ failed, other int }

func (e *ends) Allow(context.Context) (func(error), error) { return e.ended, nil }

func (e *ends) ended(err error) {
	if err == nil || observer.ClassOf(err) == observer.ClassCredentials {
		e.other++
		return
	}
	e.failed++
}

// slow is a server that accepts a socket, and answers no sooner than the logon's
// context ends.
type slow struct {
	driver.Connector
	answer error // nil: it never answers
}

func (s slow) Connect(ctx context.Context) (driver.Conn, error) {
	if opened, ok := ctx.Value(dialedKey{}).(*dialed); ok {
		opened.socket = new(source.Socket)
	}
	<-ctx.Done()
	if s.answer != nil {
		return nil, s.answer
	}
	return nil, ctx.Err()
}

// A pool that logs on by itself does so with a context that never ends, so the
// connector ends what the server does not answer. A caller may give a logon up
// just when the server says what comes of it.
func TestGateHearsOfTheEndOfSlowLogons(t *testing.T) {
	full := &mysql.MySQLError{Number: 1040}
	for name, test := range map[string]struct {
		patience time.Duration // of the caller; 0 has no end
		answer   error
		failed   int
	}{
		"no answer in time": {0, nil, 1},
		"given up":          {time.Second, nil, 0},
		"an answer":         {time.Second, full, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				if test.patience > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.patience)
					defer cancel()
				}
				gate := &ends{}
				_, err := (&connector{Connector: slow{answer: test.answer}, gate: gate}).Connect(ctx)
				if err == nil || gate.failed != test.failed || gate.other != 0 {
					t.Errorf("%v; the gate was told %+v, want %d failed", err, gate, test.failed)
				}
			})
		})
	}
}
