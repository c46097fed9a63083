package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/locks/database"
)

// lockStats is what locks stats prints with -o json.
type lockStats struct {
	Kinds  []kindStats  `json:"kinds"`
	Failed []failedLock `json:"failed"`
}

// kindStats are figures of the locks of a subject and predicate. OldestNode is empty where
// nobody holds one.
type kindStats struct {
	Subject    string        `json:"subject"`
	Predicate  string        `json:"predicate"`
	Active     int64         `json:"active"`
	AverageTTL time.Duration `json:"average_ttl_ms"`
	Oldest     time.Duration `json:"oldest_ms"`
	OldestNode string        `json:"oldest_holder,omitempty"`
	Waiting    int64         `json:"waiting"`
	Failures   int64         `json:"failures"`
}

// failedLock is a lock that acquisitions failed for.
type failedLock struct {
	Name     string    `json:"name"`
	Failures int64     `json:"failures"`
	Last     time.Time `json:"last_failed_at"`
}

func (c lockCommands) stats() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the figures of the locks in the cluster",
		Long: `Show the figures of the general locks of all processes by subject and predicate: how
many hold one, the mean of their TTLs, who has held one for longest, how many wait, and
how many acquisitions have failed because another had the lock. Then the locks for which
most have failed. Each process notes its failures every 10 s; those of a lock are
forgotten 7 days after the last one. Of those who wait it is not known what for: they
count for the predicate of the last holder.

How many locks are acquired in a second, and how long that takes, each process knows of
itself: see the metrics of package locks.`,
		Example: `  observerd locks stats
  observerd locks stats --top 50 -o json`,
		Args: takes(0, 0),
	}
	top := cmd.Flags().Int("top", 10, "how many of the locks for which most have failed")
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *top <= 0 {
			return usageError{errors.New("--top is not positive")}
		}
		cfg, _, err := c.loadConfig()
		if err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{Config: cfg}, func(ctx context.Context, operator *admin.Operator) error {
			s, err := operator.LockStats(ctx, *top)
			switch {
			case err != nil:
				return err
			case *output == formatJSON:
				return printJSON(c.stdout, statsOf(s))
			}
			return c.printStats(s.At, statsOf(s))
		})
	}
	return cmd
}

func statsOf(s admin.LockStats) lockStats {
	return lockStats{each(s.Kinds, func(k database.KindStats) kindStats { return kindStats(k) }), each(s.Failed, func(f database.FailedLock) failedLock { return failedLock(f) })}
}

func (c lockCommands) printStats(now time.Time, s lockStats) error {
	err := table(c.stdout, []string{"SUBJECT", "PREDICATE", "HELD", "AVERAGE TTL", "OLDEST", "BY", "WAITING", "FAILED"}, each(s.Kinds, func(k kindStats) []string {
		ttl, oldest := "-", "-"
		if k.Active > 0 {
			ttl, oldest = span(k.AverageTTL), span(k.Oldest)
		}
		return []string{k.Subject, k.Predicate, number(k.Active), ttl, oldest, orDash(k.OldestNode), number(k.Waiting), number(k.Failures)}
	}))
	if err != nil || len(s.Failed) == 0 {
		return err
	}
	fmt.Fprintln(c.stdout)
	return table(c.stdout, []string{"LOCK", "FAILED", "LAST"}, each(s.Failed, func(f failedLock) []string {
		return []string{f.Name, number(f.Failures), ago(now, f.Last)}
	}))
}
