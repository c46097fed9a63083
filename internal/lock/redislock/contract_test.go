package redislock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/redistest"
)

// databases numbers those of the server that the tests share.
var databases atomic.Int64

// database is the URL of an empty database of the server that the tests share.
func database(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s/%d", redistest.URL(t), databases.Add(1))
}

func open(t *testing.T, o redislock.Options) *redislock.Provider {
	t.Helper()
	p, err := redislock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// client looks at a database past the provider.
func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// dateLua lets a lease end at another time. What is shared ends with the last holder.
const dateLua = `
local value, holder = redis.call('GET', KEYS[1]), redis.call('HGET', KEYS[2], ARGV[1])
if value and string.sub(value, 1, #ARGV[1]) == ARGV[1] then return redis.call('PEXPIREAT', KEYS[1], ARGV[2]) end
if value ~= 'shared' or not holder then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. string.match(holder, ' .*'))
local last = 0
for _, h in ipairs(redis.call('HVALS', KEYS[2])) do last = math.max(last, tonumber(string.match(h, '%d+'))) end
redis.call('PEXPIREAT', KEYS[2], last)
return redis.call('PEXPIREAT', KEYS[1], last)`

// harness dates leases past the provider.
func harness(t *testing.T, o redislock.Options, c redis.UniversalClient) locktest.Harness {
	return harnessOf(func() lock.Provider { return open(t, o) }, c, "")
}

// harnessOf is that of providers whose regions have a prefix, {TAG} or none.
func harnessOf(provider func() lock.Provider, c redis.UniversalClient, prefix string) locktest.Harness {
	dating := redis.NewScript(dateLua)
	date := func(t *testing.T, g lock.Grant, ahead time.Duration) {
		name := prefix + g.Region + ":" + g.Key
		beside := prefix + name
		if prefix == "" {
			beside = "{" + name + "}"
		}
		until := time.Now().Add(g.TTL + ahead).UnixMilli()
		if err := dating.Run(t.Context(), c, []string{name, beside + ":holders"}, g.Term, until).Err(); err != nil {
			t.Errorf("date a lease: %v", err)
		}
	}
	return locktest.Harness{
		Provider: provider,
		MinTTL:   time.Second,
		Vanishes: true,
		Expire:   func(t *testing.T, g lock.Grant) { date(t, g, -g.TTL) },
		Date:     date,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		url := database(t)
		return harness(t, redislock.Options{URL: url}, client(t, url))
	})
}
