package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/source"
)

// beforeConnect lets a logon pass the gate, which hears of its end also where the
// call that needed it was given up: the pool goes on with it.
func (s *Source) beforeConnect(ctx context.Context, c *pgx.ConnConfig) error {
	ended, err := s.options.Gate.Allow(ctx)
	if err == nil {
		c.Tracer = logon{s, ended}
	}
	return err
}

// logon is a [pgx.ConnectTracer]: it hears from the driver how a logon has ended.
type logon struct {
	source *Source
	ended  func(error)
}

func (logon) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (l logon) TraceConnectEnd(ctx context.Context, d pgx.TraceConnectEndData) {
	l.ended(l.source.translate(ctx, source.Connecting, "connect", d.Err))
}

// TraceQueryStart makes it a [pgx.QueryTracer], as the driver demands.
func (logon) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (logon) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
