package redislock_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/redistest"
)

// The rights that the documentation names are enough for all that the contract asks for.
func TestContractWithTheDocumentedRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--databases", "512")
	const region = "DEFAULT" // that of the contract
	s.Must(t, "ACL SETUSER locks on >secret "+strings.ReplaceAll(redislock.ACLRule, "REGION", region)+" +select ~OTHER:* ~{OTHER:* &OTHER-channel:*")
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		url := fmt.Sprintf("redis://locks@%s/%d", s.Address(), databases.Add(1)%512)
		o := redislock.Options{URL: url, Password: "secret"}
		h := harness(t, o, client(t, strings.Replace(url, "locks@", "", 1)))
		return h
	})
}

func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/locks/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	if rule := "ACL SETUSER locks on >PASSWORD " + redislock.ACLRule + "\n"; !strings.Contains(string(text), rule) {
		t.Errorf("docs/locks/redis.md lacks the line\n%s", rule)
	}
}

// An acquisition and its release are a script each.
func TestTwoCallsALock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	release(t, p, acquire(t, p, want("order:4711"))) // Connected, and the scripts are there.
	c := client(t, s.URL())
	c.ConfigResetStat(t.Context())
	for range 10 {
		release(t, p, acquire(t, p, want("order:4711")))
	}
	stats, err := c.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := stats["Commandstats"]["cmdstat_evalsha"]
	if !strings.HasPrefix(calls, "calls=20,") {
		t.Errorf("ten locks took the scripts %s, want 20", calls)
	}
}
