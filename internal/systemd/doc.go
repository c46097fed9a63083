// Package systemd reports the state of the node to the service manager: that it polls,
// what it waits for, that it reloads or stops and why it ends, and that its loops turn.
// It speaks sd_notify(3) over the socket that NOTIFY_SOCKET names. Without that
// variable nothing is sent.
//
// # Messages
//
// READY=1 is sent when the node polls, and after each reload when its new node begins:
// the manager delays a further reload until then, which may be the one that names
// another database. Until READY=1 is sent, EXTEND_TIMEOUT_USEC extends the start or the
// reload again and again, as long as no loop hangs: the node waits for a database that
// is down, however long it takes, and a start that hangs ends after its timeout.
// WATCHDOG=1 is sent under the same condition. STATUS= is one line for people; any user
// of the host may read it.
package systemd
