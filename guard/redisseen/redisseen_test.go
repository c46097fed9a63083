package redisseen_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/guard/redisseen"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(redistest.Wrap(m)) }

func TestSeen(t *testing.T) {
	t.Parallel()
	o, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	var s guard.Seen = redisseen.New(c, "payments-seen")
	has := func(id string, want bool) {
		t.Helper()
		if got, err := s.Has(t.Context(), id); got != want || err != nil {
			t.Errorf("%s: %t, %v", id, got, err)
		}
	}
	has("1", false)
	if err := s.Add(t.Context(), "1", time.Hour); err != nil {
		t.Fatal(err)
	}
	has("1", true)
	has("2", false)
	if ttl := c.TTL(t.Context(), "payments-seen:1").Val(); ttl < 59*time.Minute || ttl > time.Hour {
		t.Errorf("remembered for %s", ttl)
	}
}
