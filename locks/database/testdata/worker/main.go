// Command worker is a program of another module that uses locks as any user would.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

func main() {
	if err := work(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(ctx context.Context, url string) error {
	provider, err := database.Open(ctx, url, database.Options{})
	if err != nil {
		return err
	}
	m, err := locks.Open(ctx, locks.Options{Provider: provider})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(ctx) }()
	return m.Do(ctx, locks.Descriptor{
		Subject: "page", Predicate: "extracting", Resources: []string{"fs-1", "doc-2", "3"}, TTL: time.Minute,
	}, func(_ context.Context, l *locks.Lease) error {
		fmt.Println(l.Descriptor(), l.Fence())
		return nil
	})
}
