package locks_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/locks"
)

func TestFind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{Node: "a"})
		other := process(t, p)
		old := page
		old.Metadata = map[string]string{"purpose": "test"}
		first := acquire(t, m, t.Context(), old)
		for i := range 3 {
			acquire(t, m, t.Context(), in(below(fileset, "page", fmt.Sprint(i)), locks.Shared))
		}
		acquire(t, m, t.Context(), below(fileset, "page", "a:b"))
		time.Sleep(time.Minute)
		acquire(t, m, t.Context(), audit)
		var a arrivals
		a.wait(t, other, "b", page, locks.Within(time.Minute))
		find := func(f locks.Filter, want int) []locks.Found {
			t.Helper()
			found, err := other.Find(t.Context(), f)
			if err != nil || len(found) != want {
				t.Errorf("%+v: %d found, want %d: %v, %v", f, len(found), want, found, err)
			}
			return found
		}
		find(locks.Filter{}, 6)
		find(locks.Filter{Limit: 2}, 2)
		find(locks.Filter{Node: "b"}, 0)
		find(locks.Filter{Subject: "page"}, 5)
		find(locks.Filter{Subject: "page", Predicate: "processing"}, 4)
		find(locks.Filter{Subject: "processing"}, 0)
		find(locks.Filter{Mode: locks.Shared}, 3)
		for mode, reason := range map[locks.Mode]string{"foo": "is unknown; use one of exclusive, shared, intent, intent-exclusive", "Shard": "is unknown; use shared"} {
			found, err := other.Find(t.Context(), locks.Filter{Mode: mode})
			var wrong *locks.DescriptorError
			if !errors.As(err, &wrong) || *wrong != (locks.DescriptorError{Field: "mode", Value: string(mode), Reason: reason}) || found != nil {
				t.Errorf("mode %s: %v, %v", mode, found, err)
			}
		}
		find(locks.Filter{Resources: []string{"3", "fs-1"}}, 1)
		find(locks.Filter{Resources: []string{"a:b"}}, 1)
		find(locks.Filter{Resources: []string{"a"}}, 0)
		find(locks.Filter{Below: []string{"fs-1"}}, 5)
		find(locks.Filter{Below: []string{"fs-1", "doc-2"}}, 1)
		find(locks.Filter{Below: []string{"fs-1", "doc-2", "3"}}, 1)
		find(locks.Filter{Below: []string{"doc-2"}}, 0)
		find(locks.Filter{Below: []string{"fs"}}, 0)
		find(locks.Filter{Below: []string{"status"}, Subject: "audit"}, 1)
		find(locks.Filter{Key: page.Key()}, 1)
		find(locks.Filter{Key: "page:fs-1"}, 0)
		find(locks.Filter{OlderThan: -time.Hour}, 6)
		find(locks.Filter{OlderThan: time.Minute}, 5)
		find(locks.Filter{Expired: true}, 0)
		g, err := p.Acquire(t.Context(), lock.Request{
			Key: "page:fs-1:\u200b", Region: locks.DefaultRegion, TTL: time.Hour, Descriptor: "lock:exclusive:page:writing:fs-1:\u200b",
		})
		if err != nil {
			t.Fatal(err)
		}
		if l := find(locks.Filter{Predicate: "writing"}, 1); len(l) == 1 && l[0].Term != g.Term {
			t.Errorf("the lock whose key has a character that nobody sees is %+v", l[0])
		}
		l := find(locks.Filter{Predicate: "extracting"}, 1)[0]
		if l.Lock.String() != page.String() || l.Term != first.Term() || l.Fence != first.Fence() || l.Node != "a" || l.Age != time.Minute || l.Left <= 0 ||
			l.Waiting != 1 || l.Lock.TTL != page.TTL || l.Lock.Metadata["purpose"] != "test" {
			t.Errorf("found %+v", l)
		}
		p.ExpireTerm(first.Term())
		find(locks.Filter{Expired: true}, 1)
		_ = first.Release(t.Context())
		time.Sleep(5 * time.Second)
	})
}
