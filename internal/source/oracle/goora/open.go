package goora

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// program is what a DBA sees in V$SESSION as the program and as its module.
const program = "observerd"

// maxFetchSize is the largest that the driver can write into a request; with
// magicFetchSize it chooses a size itself.
const (
	maxFetchSize   = 1<<15 - 1
	magicFetchSize = 25
)

// Open returns a connector to a target. It does not connect, but
// reads a wallet at once. Connections of the
// connector keep these promises, whatever the driver below does:
//
//   - a call returns once its context has ended and Grace has passed, and its
//     error wraps the context's;
//   - a connection is used again only after success or a clean refusal of the
//     database ([*client.Error]); after anything else it is closed without a word;
//   - a panic of the driver is an error;
//   - driver.ErrBadConn is returned only before a statement was sent, so that
//     no statement runs twice;
//   - rows end with io.EOF only where the database has said that there are no
//     more: a result that was cut short is [client.ErrShort];
//   - numbers arrive as their exact decimal text, those of BINARY_FLOAT as float32.
//     Times are another matter: no two versions of a driver agree on their zone, so
//     statements select them as text.
func Open(t client.Target) (*Connector, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := shape(); err != nil {
		return nil, err
	}
	t.FetchSize = fetchSize(t.FetchSize)
	dsn := dataSource(t)
	if err := understood(dsn); err != nil {
		return nil, err
	}
	inner, ok := go_ora.NewConnector(dsn).(*go_ora.OracleConnector)
	if !ok {
		return nil, fmt.Errorf("%w: its connector has changed", client.ErrProtocol)
	}
	inner.Dialer(dialer{timeout: t.ConnectTimeout / time.Duration(addresses(t))})
	return &Connector{target: t, inner: inner, turn: make(chan struct{}, 1)}, nil
}

// fetchSize is the nearest that the driver takes as it is.
func fetchSize(asked int) int {
	if asked == magicFetchSize {
		asked++
	}
	return min(asked, maxFetchSize)
}

// dataSource writes the target as the driver reads it. The location is that of
// times without a zone: it saves each logon a statement, and is the same in all
// versions of the driver.
func dataSource(t client.Target) string {
	o := url.Values{
		"SERVER LOCATION": {"UTC"},
		"PREFETCH_ROWS":   {strconv.Itoa(t.FetchSize)},
		"LOB FETCH":       {"PRE"},
		"PROGRAM":         {program},
	}
	u := url.URL{Scheme: "oracle", User: url.UserPassword(t.User, t.Password), Host: ":0"}
	switch {
	case t.Descriptor != "":
		o.Set("connStr", t.Descriptor)
	default:
		u.Host, u.Path = t.Servers[0], "/"+t.Service
		o["SERVER"] = t.Servers[1:]
	}
	if t.SID != "" {
		o.Set("SID", t.SID)
	}
	if t.TLS {
		o.Set("SSL", "true")
		o.Set("SSL VERIFY", strconv.FormatBool(t.Verify))
	}
	if t.Wallet != "" {
		o.Set("WALLET", t.Wallet)
	}
	if t.WalletPassword != "" {
		o.Set("WALLET PASSWORD", t.WalletPassword)
	}
	u.RawQuery = o.Encode()
	return u.String()
}

// understood reports whether the driver can read its own URL, and the wallet
// that it names, without connecting.
func understood(dsn string) error {
	err := protect(func() error {
		_, err := go_ora.ParseConfig(dsn)
		return err
	})
	switch {
	case errors.As(err, new(*url.Error)): // It quotes the whole, password included.
		return errors.New("the driver cannot read the target")
	case errors.Is(err, client.ErrProtocol):
		return errors.New("the driver cannot read this kind of wallet")
	}
	return err
}

var host = regexp.MustCompile(`(?i)\(\s*HOST\s*=`)

// addresses is how many servers may have to be dialled within one timeout.
func addresses(t client.Target) int {
	return max(1, len(t.Servers), len(host.FindAllString(t.Descriptor, -1)))
}
