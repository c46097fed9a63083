// Package client is the seam between the Oracle source and a driver: where to
// log on, what a session is told, and how the database's refusals come back.
// Package goora is the driver.
package client

import (
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

	// Action and Identifier are what a DBA sees in V$SESSION.
	Action, Identifier string
	// FetchSize is how many rows one round trip brings. Required.
	FetchSize int
	// ConnectTimeout bounds a logon from the first packet to the end of the
	// session's setup. Grace is how long the database may take to stop a statement
	// whose context has ended before its socket is closed. Both are required.
	ConnectTimeout, Grace time.Duration
	// Gate guards the logons. Required.
	Gate source.Gate
	// Era ends the sessions with a former database. Required.
	Era *source.Era
}
