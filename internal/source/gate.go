package source

import "context"

// Gate limits the logons of one account, over all sources and nodes that share
// it: a wrong password that each of them tries is a locked account. A source
// that was given none logs on whenever it needs a connection.
type Gate interface {
	// Allow is called before each logon, and waits for its turn. Its error is an
	// [*observer.Fault], of class credentials where no node may try; or the context's,
	// when that ends before it is this logon's turn. There is no logon then.
	//
	// ended is called once, as soon as the logon has ended: with nil when it went well,
	// with a fault of class credentials when the database has refused the account, with
	// any other error when that says nothing of the account. Until then other logons
	// have to wait. It is not called for a logon that was given up, as its context had
	// ended, while the database may still work on it: it may yet count a wrong password.
	Allow(ctx context.Context) (ended func(error), err error)
}

// Open is the gate of a source that was given none.
type Open struct{}

// Allow implements [Gate].
func (Open) Allow(context.Context) (func(error), error) { return func(error) {}, nil }
