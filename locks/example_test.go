package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/lockstest"
)

// The examples keep their locks in memory; see package locks/database for a provider.
func example() *locks.Manager {
	m, err := locks.Open(context.Background(), locks.Options{Provider: new(lockstest.Memory).Provider(), Node: "worker-1"})
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleManager_Do() {
	ctx, m := context.Background(), example()
	defer func() { _ = m.Close(ctx) }()
	audit := locks.Descriptor{
		Subject: "audit", Predicate: "processing", Resources: []string{"status-reconciliation"}, TTL: 300 * time.Second,
	}
	err := m.Do(ctx, audit, func(ctx context.Context, l *locks.Lease) error {
		fmt.Println("under", l.Descriptor(), "for", l.TTL())
		err := m.Do(context.Background(), audit, func(context.Context, *locks.Lease) error { return nil }, locks.FailFast())
		var held *locks.HeldError
		if errors.As(err, &held) {
			fmt.Println("another caller:", held.Lock, "is held by", held.Node)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// under lock:exclusive:audit:processing:status-reconciliation for 5m0s
	// another caller: lock:exclusive:audit:processing:status-reconciliation is held by worker-1
	// <nil>
}

func ExampleManager_Acquire() {
	ctx, m := context.Background(), example()
	defer func() { _ = m.Close(ctx) }()
	l, err := m.Acquire(ctx, locks.Descriptor{
		Subject: "consolidation-job", Predicate: "triggering", Resources: []string{"fs-abc123", "VA-IRRL-LIN"}, TTL: 60 * time.Second,
		Metadata: map[string]string{"purpose": "consolidate", "scope": "fileset"},
	}, locks.Within(10*time.Second))
	if errors.Is(err, locks.ErrHeld) {
		return // Another has triggered it.
	}
	fmt.Println(l, err)
	fmt.Println(l.Release(ctx))
	// Output:
	// lock:exclusive:consolidation-job:triggering:fs-abc123:VA-IRRL-LIN (fence 1) <nil>
	// <nil>
}

func ExampleLease_LogValue() {
	ctx, m := context.Background(), example()
	defer func() { _ = m.Close(ctx) }()
	nightly := locks.Name("nightly")
	nightly.Metadata = map[string]string{"purpose": "report"}
	l, err := m.Acquire(ctx, nightly)
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("Report begins", "lease", l)
	fmt.Println(l.Release(ctx))
	// Output:
	// level=INFO msg="Report begins" lease.lock=lock:exclusive:name:processing:nightly lease.fence=1 lease.ttl=30s
	// <nil>
}
