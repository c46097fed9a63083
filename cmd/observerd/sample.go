package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/sample"
)

// sampler is one run of sample.
type sampler struct {
	*cli
	path       string
	steps      int
	every, end time.Duration
}

func (c *cli) sampleCommand() *cobra.Command {
	s := &sampler{cli: c}
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Make and feed a sample warehouse: orders, stock and tasks that move",
		Long: `Make an SQLite file with the orders, stock and picking tasks of a warehouse, if it
is not there, and move them: until interrupted, for a time, or by some steps.`,
		Example: `  observerd sample
  observerd sample --path /tmp/warehouse.db --steps 1000
  observerd sample --every 200ms --for 1m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case s.steps < 0 || s.every <= 0 || s.end < 0:
				return usageError{errors.New("--steps and --for cannot be negative, --every must be positive")}
			case cmd.Flags().Changed("steps") && (cmd.Flags().Changed("every") || cmd.Flags().Changed("for")):
				return usageError{errors.New("--steps is done at once; leave --every and --for out")}
			}
			return s.feed(cmd.Context(), cmd.Flags().Changed("steps"))
		},
	}
	cmd.Flags().StringVar(&s.path, "path", "var/warehouse.db", "the SQLite `file`")
	cmd.Flags().IntVar(&s.steps, "steps", 0, "make so many movements at once, and return; 0 makes the warehouse only")
	cmd.Flags().DurationVar(&s.every, "every", time.Second, "the time between movements")
	cmd.Flags().DurationVar(&s.end, "for", 0, "return after this time; 0: when interrupted")
	return cmd
}

func (s *sampler) feed(ctx context.Context, steps bool) (err error) {
	warehouse, err := sample.Open(ctx, s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, warehouse.Close()) }()
	if steps {
		if err := warehouse.Step(ctx, s.steps); err != nil {
			return err
		}
		fmt.Fprintf(s.stdout, "%s: %d movements made\n", s.path, s.steps)
		return nil
	}
	if s.end > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.end)
		defer cancel()
	}
	fmt.Fprintf(s.stderr, "feeding %s; interrupt to end\n", s.path)
	return warehouse.Run(ctx, s.every)
}
