package wiring_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wiring"
)

// A poller's lock is described as every other one is, and keeps its key.
func TestLockOfAType(t *testing.T) {
	t.Parallel()
	got := wiring.TypeLockRequest(config.Type{
		Name: "order", LockName: "order-observer-poll", Lock: config.Lock{TTL: time.Minute, Region: "DEFAULT", KeyFormat: "plain"},
	}, "a")
	want := lock.Request{
		Key: "order-observer-poll", Region: "DEFAULT", TTL: time.Minute, Name: "order-observer-poll", Node: "a",
		Descriptor: "lock:exclusive:observer:polling:order",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
