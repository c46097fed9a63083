package source

import "context"

// Gate limits the logons of one account, over all sources and nodes that share
// it: a wrong password that each of them tries is a locked account. A source
// that was given none logs on whenever it needs a connection.
//
// A source calls Allow before each logon, and reports how one that was allowed has
// ended as soon as it has: by one of Refused, Accepted and Failed, once. Until then
// other logons may have to wait. The context is that of the logon, or one with its
// values. It may be of no call of the source: a pool logs on by itself for calls that
// wait for a connection.
//
// A logon that was given up, as its context had ended, is not reported while the
// database may still work on it: it may yet count a wrong password. A source whose
// logons all have the values of the call that needs them may leave Failed out, since
// that call fails with its logon.
type Gate interface {
	// Allow is called before each logon. Its error is an [*observer.Fault] of
	// class credentials that says since when, and until when, no node may try; or
	// the context's, when that ends before it is this logon's turn. There is no
	// logon then, and nothing to report.
	Allow(ctx context.Context) error
	// Refused says that the database has refused the account; fault is of class
	// credentials.
	Refused(ctx context.Context, fault error)
	// Accepted says that a logon went well.
	Accepted(ctx context.Context)
	// Failed says that a logon has ended in any other way, which says nothing of
	// the account: no server listens, say, or there was no answer in time.
	Failed(ctx context.Context)
}

// Open is the gate of a source that was given none.
type Open struct{}

// Allow implements [Gate].
func (Open) Allow(context.Context) error { return nil }

// Refused implements [Gate].
func (Open) Refused(context.Context, error) {}

// Accepted implements [Gate].
func (Open) Accepted(context.Context) {}

// Failed implements [Gate].
func (Open) Failed(context.Context) {}
