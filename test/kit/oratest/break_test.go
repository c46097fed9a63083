package oratest_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"testing"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"
)

// tapped is a dialer that lets a test reach the connection of the driver.
type tapped struct{ net.Conn }

func (d *tapped) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	d.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return d.Conn, err
}

// TestLateBreak shows the fate of a break that came after the answer: the next call ends by
// it, and the one after that goes on.
func TestLateBreak(t *testing.T) {
	s := counting(t)
	d := &tapped{}
	connector := go_ora.NewConnector(s.URL(user, password, "SERVER LOCATION", "UTC")).(*go_ora.OracleConnector)
	connector.Dialer(d)
	conn, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := d.Write([]byte{0, 0, 0, 11, 12, 0, 0, 0, 1, 0, 3}); err != nil { // As the driver does.
		t.Fatal(err)
	}
	eventually(t, "the server sees the break", func() bool { return s.Breaks() == 1 })
	query := func() error {
		rows, err := conn.(driver.QueryerContext).QueryContext(t.Context(), "SELECT id FROM t", nil)
		if err != nil {
			return err
		}
		return rows.Close()
	}
	var refused *network.OracleError
	if err := query(); !errors.As(err, &refused) || refused.ErrCode != 1013 {
		t.Errorf("error %v, want ORA-01013", err)
	}
	if err := query(); err != nil {
		t.Errorf("the call after: %v", err)
	}
}
