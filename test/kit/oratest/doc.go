// Package oratest is a server that an Oracle client takes for a database: it
// speaks the transport (TNS) and the session layer (TTC) of a 19c as far as
// go-ora v2.9.0 needs them, checks passwords, and fails in every way that a
// test asks for. It has no SQL of its own: a [wire.Handler] answers the
// statements, a few lines of a test or the engine in package engine.
//
//	srv := oratest.Start(t, oratest.Options{
//		Users:   map[string]string{"observer": "secret"},
//		Handler: engine.New(engine.Options{}),
//	})
//	db := sql.OpenDB(go_ora.NewConnector(srv.URL("observer", "secret", "SERVER LOCATION", "UTC")))
//
// Without SERVER LOCATION the driver asks SELECT SYSTIMESTAMP FROM DUAL at each
// logon, as any statement.
//
// # What can go wrong
//
// [Server.On] lays a [Fault] for the statements that match, [Server.OnCall] for
// the calls that are no statements, and both return the [Trap]: Reached tells
// when somebody fell into it, Release takes it away and lets what hangs go on.
//
//	srv.On(oratest.SQL("orders"), oratest.Fail(942))
//	srv.On(oratest.SQL("orders"), oratest.Fault{Hang: true})                        // stops on the client's break
//	srv.On(oratest.SQL("orders"), oratest.Fault{Hang: true, Deaf: true})            // does not; Release makes the answer late
//	srv.On(oratest.SQL("orders"), oratest.Fault{At: oratest.After, Then: oratest.Cut}) // executed, and no answer
//	srv.On(oratest.SQL("orders"), oratest.Fault{At: oratest.Fetching, Then: oratest.Reset}) // rows end too early, without an error
//	srv.On(oratest.SQL("orders"), oratest.Fault{Then: oratest.Reset})               // rows that are none: go-ora panics
//	srv.OnCall(oratest.Logoff, oratest.Fault{Hang: true, Deaf: true})
//	srv.Refuse(3, 12528); srv.Mute(true); srv.KillSessions(); srv.Cut()
//
// The counters of [Server] say what clients have done, in round trips and in
// statements as they were received.
//
// # What it does not do
//
// Native network encryption, redirects, array binds, binds of other types than
// text and numbers, PL/SQL with OUT binds, statements that are executed again
// without their text, commits, LOBs in pieces, columns of DATE, of times with a
// zone and of ROWID, object types, and versions of the session layer below 11: a
// server of version 11 differs in its banner alone. What it cannot read ends the
// connection and is one of [Server.Problems]; a value that it cannot send is
// ORA-00600.
//
// It is frozen: it changes only when a new test needs it.
package oratest
