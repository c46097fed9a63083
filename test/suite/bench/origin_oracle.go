package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// The owner of the emulated tables, and the fetch size of both sides.
const (
	oracleUser      = "app"
	oraclePassword  = "bench"
	oracleFetchSize = 1000
)

// oracleOrigin is the emulator, in this process: what it needs of the machine
// is taken from whoever reads it.
type oracleOrigin struct {
	engine *engine.Engine
	server *oratest.Server
}

func openOracle(context.Context, *suite) (origin, error) {
	o := &oracleOrigin{engine: engine.New(engine.Options{})}
	var err error
	o.server, err = oratest.Open(oratest.Options{
		Users: map[string]string{oracleUser: oraclePassword}, Handler: o.engine, Repeats: true,
	})
	return o, err
}

func (*oracleOrigin) kind() string  { return kindOracle }
func (*oracleOrigin) name() string  { return "Oracle, through the emulator" }
func (o *oracleOrigin) url() string { return o.server.URL(oracleUser, oraclePassword) }
func (o *oracleOrigin) close()      { o.server.Close() }

// oracleColumns are those of ordersColumns.
const oracleColumns = ` (
  id         NUMBER(19) PRIMARY KEY,
  customer   VARCHAR2(60) NOT NULL,
  status     VARCHAR2(60) NOT NULL,
  total      NUMBER(12, 2) NOT NULL,
  note       VARCHAR2(400) NOT NULL,
  updated_at TIMESTAMP(6) NOT NULL
)`

// oracleOrders are the orders of ordersSQL, but for the notes. i counts the
// rows of a product of tables with ten rows.
const oracleOrders = `
SELECT 1000000 + i,
       'customer ' || MOD(i * 7919, 50000),
       DECODE(MOD(i, 4), 0, 'NEW', 1, 'RELEASED', 2, 'PICKED', 'SHIPPED'),
       MOD(i * 31, 1000000) / 100,
       RPAD(TO_CHAR(i * 7919 + 123456789012345), 120 + MOD(i * 13, 160), TO_CHAR(i * 104729) || ' '),
       TIMESTAMP '2026-01-01 00:00:00' + NUMTODSINTERVAL(i * 0.007, 'SECOND')
  FROM (SELECT ROWNUM AS i FROM digits a, digits b, digits c, digits d, digits e, digits f WHERE ROWNUM <= %d)`

func (o *oracleOrigin) fill(_ context.Context, sizes []int) error {
	statements := []string{"CREATE TABLE digits (n NUMBER)"}
	for n := range 10 {
		statements = append(statements, fmt.Sprintf("INSERT INTO digits VALUES (%d)", n))
	}
	for _, rows := range sizes {
		table := tableOf(rows)
		statements = append(statements, "CREATE TABLE "+table+oracleColumns, "CREATE INDEX "+table+"_updated ON "+table+" (updated_at, id)",
			"INSERT INTO "+table+fmt.Sprintf(oracleOrders, rows))
	}
	for _, statement := range statements {
		if err := o.engine.Exec(statement); err != nil {
			return fmt.Errorf("fill the emulator: %w", err)
		}
	}
	return nil
}

// counted asks the emulator, which knows better than the network.
func (o *oracleOrigin) counted(context.Context) (counted, error) {
	return counted{url: o.url(), trips: func() int64 { return int64(o.server.RoundTrips()) }, close: func() {}}, nil
}

func openOracleSource(where string) (pollable, error) {
	return oracle.Open(oracle.Options{URL: where, FetchSize: oracleFetchSize})
}

// loopOracle is the bare loop over go-ora, which fetches as many rows at once
// as a poll does.
func loopOracle(ctx context.Context, where, table string, watch *stopwatch) (int64, error) {
	parsed, err := url.Parse(where)
	if err != nil {
		return 0, err
	}
	parsed.RawQuery = url.Values{
		"PREFETCH_ROWS": {strconv.Itoa(oracleFetchSize)}, "SERVER LOCATION": {"UTC"},
	}.Encode()
	return loopSQL(ctx, sql.OpenDB(go_ora.NewConnector(parsed.String())), table, watch)
}
