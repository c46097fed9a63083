// Package client is the seam between the Oracle source and a driver: where to
// log on, what a session is told, and how the database's refusals come back.
// A driver is one function, [Open]; package goora is the one that ships.
package client

import (
	"database/sql/driver"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// Target says which database to log on to and how the sessions shall be.
type Target struct {
	// User and Password are as the database knows them, any character allowed.
	User, Password string
	// Servers are host:port, tried in order. Empty with a Descriptor.
	Servers []string
	// Service or SID names the database; exactly one of them is set, or
	// Descriptor is a whole connect descriptor "(DESCRIPTION=…)".
	Service, SID, Descriptor string
	// TLS asks for an encrypted connection (TCPS). Wallet is a folder with
	// cwallet.sso, or with ewallet.p12 and WalletPassword. Verify checks the
	// server's certificate and its name.
	TLS                    bool
	Verify                 bool
	Wallet, WalletPassword string

	// Program, Module, Action and Identifier are what a DBA sees in V$SESSION.
	Program, Module, Action, Identifier string
	// FetchSize is how many rows one round trip brings; 0 leaves it to the driver.
	FetchSize int
	// ConnectTimeout bounds a logon from the first packet to the end of the
	// session's setup; 0 is ten seconds. Grace is how long the database may take
	// to stop a statement whose context has ended before its socket is closed; 0
	// is two seconds.
	ConnectTimeout, Grace time.Duration
	// Gate guards the logons; nil lets all of them pass.
	Gate source.Gate
}

// Open returns a connector to a target. It does not connect. Connections of the
// connector keep these promises, whatever the driver below does:
//
//   - a call returns once its context has ended and Grace has passed, and its
//     error wraps the context's;
//   - a connection is used again only after success or a clean refusal of the
//     database ([*Error]); after anything else it is closed without a word;
//   - a panic of the driver is an error;
//   - driver.ErrBadConn is returned only before a statement was sent, so that
//     no statement runs twice;
//   - rows end with io.EOF only where the database has said that there are no
//     more: a result that was cut short is [ErrShort];
//   - numbers arrive as their exact decimal text, those of BINARY_FLOAT as float32.
//     Times are another matter: no two versions of a driver agree on their zone, so
//     statements select them as text.
type Open func(Target) (driver.Connector, error)

// Warner is what a connector may be besides: Warning is what went wrong, at the
// latest logon, in a part of the session's setup that it can do without, such
// as the name under which a DBA sees it; nil when all went well.
type Warner interface {
	Warning() error
}
