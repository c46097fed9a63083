package contend_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/redis"
	"github.com/observerd/observerd/test/kit/redistest"
)

// compareDelete releases a key of the older system.
var compareDelete = goredis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// TestOlderSystemContends has clients that know the older key alone work beside ours.
func TestOlderSystemContends(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t) + "/390"
	address, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	older := goredis.NewClient(address)
	defer older.Close()
	p, err := redis.Open(t.Context(), url, redis.Options{Legacy: map[string]string{"fileset/processing": "fileset-processing:{1}"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := locks.Open(t.Context(), locks.Options{Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	const times = 30
	var inside atomic.Int32
	enter := func(who string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s is inside with %d others", who, n-1)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for range times {
				err := m.Do(t.Context(), locks.Descriptor{Subject: "fileset", Predicate: "processing", Resources: []string{"1"}}, func(context.Context, *locks.Lease) error {
					enter("one of ours")
					return nil
				}, locks.Within(time.Minute))
				if err != nil {
					t.Error(err)
				}
			}
		})
		work.Go(func() {
			for range times {
				if err := olderSection(t.Context(), older, enter); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// olderSection tries until it has the older key.
func olderSection(ctx context.Context, c *goredis.Client, enter func(who string)) error {
	const key = "fileset-processing:1"
	id := uuid.NewString()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		taken, err := c.SetNX(ctx, key, id, 30*time.Second).Result()
		if err != nil {
			return err
		}
		if taken {
			enter("one of the older system")
			n, err := compareDelete.Run(ctx, c, []string{key}, id).Int()
			if err == nil && n != 1 {
				err = fmt.Errorf("the key %s was taken away", key)
			}
			return err
		}
	}
	return errors.New("the older system gets no lock for a minute")
}
