// Package systemd tells the service manager how the node is: that it polls, what
// it waits for, that it reloads or stops and why it ends, and that its loops turn.
// It speaks sd_notify(3) over the socket that NOTIFY_SOCKET names. Without that
// variable nothing is sent.
//
// # What the manager is told when
//
// READY=1 comes when the node polls, and after each reload when its node begins:
// the manager holds back a further reload until then, and a node whose new
// database does not answer could not be told to take another one. Until READY=1
// comes, EXTEND_TIMEOUT_USEC gives the start or the reload more time, again and
// again, as long as no loop hangs: a database that is down is waited for, however
// long it takes, and a start that hangs is ended after its timeout. WATCHDOG=1 is
// sent under the same condition. STATUS= is one line for people; any user of the
// host may read it.
package systemd
