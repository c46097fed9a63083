package mysql_test

import (
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/netfault"
)

// comQuery is the command of a statement, which follows the length and the number of its packet.
const comQuery = 3

// recorded returns a URL that leads through a proxy, and what has passed it since the last
// call: each statement is in a message of its own.
func recorded(t *testing.T, url string) (proxied string, taken func() sourcetest.Sent) {
	t.Helper()
	var mu sync.Mutex
	var sent sourcetest.Sent
	proxied, proxy := netfault.StartBefore(t, url)
	proxy.Inspect(func(message []byte) netfault.Fault {
		mu.Lock()
		defer mu.Unlock()
		sent.Trips++
		if len(message) > 5 && message[3] == 0 && message[4] == comQuery {
			sent.Statements = append(sent.Statements, string(message[5:]))
		}
		return netfault.Fault{}
	})
	return proxied, func() sourcetest.Sent {
		mu.Lock()
		defer mu.Unlock()
		defer func() { sent = sourcetest.Sent{} }()
		return sent
	}
}

// TestQuietPoll has a server of its own: others ask theirs for its transactions, too.
func TestQuietPoll(t *testing.T) {
	t.Parallel()
	url := mariatest.Start(t, mariatest.Options{}).New(t)
	exec(t, connect(t, url), eventsTable+`; INSERT INTO events VALUES (1, NOW(6)), (2, NOW(6))`)
	proxied, taken := recorded(t, url)
	sourcetest.QuietPolls(t, open(t, mysql.Options{URL: proxied}), events(), 10, 10, taken)
}
