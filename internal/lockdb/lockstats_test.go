package lockdb_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
)

func TestLockStats(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		held := func(key, node, descriptor string, ttl time.Duration, mode lock.Mode) {
			t.Helper()
			r := lock.Request{Key: key, Region: "LOCKS", TTL: ttl, Name: key, Node: node, Descriptor: descriptor, Mode: mode}
			if _, err := general(db).Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		held("page:1", "a", "lock:shared:page:reading:1", time.Minute, lock.Shared)
		held("page:1", "b", "lock:shared:page:reading:1", 2*time.Minute, lock.Shared)
		held("page:2", "c", "lock:exclusive:page:reading:2", 3*time.Minute, lock.Exclusive)
		long := "page:" + "of a document whose name is longer than a row's key"
		err := general(db).NoteFailures(t.Context(), []lock.Failure{
			{Region: "LOCKS", Key: "page:1", Subject: "page", Predicate: "writing", Count: 30},
			{Region: "LOCKS", Key: "page:1", Subject: "page", Predicate: "reading", Count: 20},
			{Region: "LOCKS", Key: long, Subject: "page", Predicate: "writing", Count: 10},
			{Region: "OTHER", Key: "page:1", Subject: "page", Predicate: "writing", Count: 1000},
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := general(db).Stats(t.Context(), "LOCKS", 10)
		if err != nil || len(s.Kinds) != 2 || len(s.Failed) != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		if k := s.Kinds[0]; k.Oldest < 0 {
			t.Errorf("the oldest is held for %s", k.Oldest)
		}
		s.Kinds[0].Oldest = 0
		for i, want := range []database.KindStats{
			{Subject: "page", Predicate: "reading", Active: 3, AverageTTL: 2 * time.Minute, OldestNode: "a", Failures: 20},
			{Subject: "page", Predicate: "writing", Failures: 40},
		} {
			if s.Kinds[i] != want {
				t.Errorf("got %+v, want %+v", s.Kinds[i], want)
			}
		}
		for i, want := range []database.FailedLock{{Name: "page:1", Failures: 50}, {Name: long, Failures: 10}} {
			if f := s.Failed[i]; f.Name != want.Name || f.Failures != want.Failures || f.Last.IsZero() {
				t.Errorf("got %+v, want %+v", f, want)
			}
		}
		if s, err := general(db).Stats(t.Context(), "LOCKS", 1); err != nil || len(s.Failed) != 1 {
			t.Errorf("of the worst: %+v, %v", s, err)
		}
	})
}
