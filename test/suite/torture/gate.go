package torture

import (
	"bytes"
	"context"
	"regexp"
	"sync"

	"github.com/observerd/observerd/test/kit/netfault"
)

// gate is the way of one node to one server.
type gate struct {
	*netfault.Proxy

	mu sync.Mutex
	// owner is the last fault that set the impairment; only it takes it away.
	owner int
	// watching is held by the fault that watches the requests.
	watching sync.Mutex
}

func openGate(ctx context.Context, target string) (*gate, error) {
	proxy, err := netfault.Open(ctx, target)
	if err != nil {
		return nil, err
	}
	return &gate{Proxy: proxy}, nil
}

// impair changes the impairment; the function that it returns takes it away again,
// unless it was changed since.
func (g *gate) impair(w netfault.Impairment) (over func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owner++
	mine := g.owner
	g.SetImpairment(w)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.owner == mine {
			g.SetImpairment(netfault.Impairment{})
		}
	}
}

// catch injects the fault into the next request that matches, and closes the
// channel when it does. The watch must be let go, and may be twice.
func (g *gate) catch(matches func([]byte) bool, fault netfault.Fault) (caught <-chan struct{}, letGo func(), ok bool) {
	if !g.watching.TryLock() {
		return nil, nil, false
	}
	struck := make(chan struct{})
	var once sync.Once
	g.Inspect(func(request []byte) (f netfault.Fault) {
		if matches(request) {
			once.Do(func() {
				f = fault
				close(struck)
			})
		}
		return f
	})
	return struck, sync.OnceFunc(func() {
		g.Inspect(nil)
		g.watching.Unlock()
	}), true
}

// commit is how the statement begins that writes into the event log, in any
// schema.
var commit = regexp.MustCompile(`INSERT INTO (\S+\.)?"?obs_event\b`)

// IsCommit reports whether a request to PostgreSQL commits a chunk. That the
// statement is only being described does not count.
func IsCommit(request []byte) bool {
	describes := bytes.Contains(request, []byte("D\x00\x00\x00\x06S\x00"))
	return commit.Match(request) && !describes
}

// isAnyCommit recognises the end of other transactions too, such as that of a
// chunk that is copied.
func isAnyCommit(request []byte) bool {
	return IsCommit(request) || bytes.Contains(request, []byte("commit\x00"))
}
