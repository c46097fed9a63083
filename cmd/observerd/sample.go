package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/internal/jsontext"
)

func (c *cli) sampleCommand() *cobra.Command {
	var path string
	var steps int
	var output *format
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Create and feed a sample warehouse: orders, stock and tasks that change",
		Long: `Create an SQLite file with the orders, stock and picking tasks of a warehouse, if it
does not exist, and change them: every second until interrupted, or by some steps.`,
		Example: `  observerd sample
  observerd sample --path /tmp/warehouse.db --steps 1000`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 0 {
				return usageError{errors.New("--steps cannot be negative")}
			}
			return c.feedSample(cmd.Context(), path, steps, cmd.Flags().Changed("steps"), *output)
		},
	}
	cmd.Flags().StringVar(&path, "path", "var/warehouse.db", "the SQLite `file`")
	cmd.Flags().IntVar(&steps, "steps", 0, "make so many movements at once, and return; 0 makes the warehouse only")
	output = outputFlag(cmd)
	return cmd
}

func (c *cli) feedSample(ctx context.Context, path string, steps int, once bool, output format) (err error) {
	warehouse, err := sample.Open(ctx, path, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, warehouse.Close()) }()
	if !once {
		fmt.Fprintf(c.stderr, "feeding %s; interrupt to end\n", path)
		return warehouse.Run(ctx, sample.Every)
	}
	err = warehouse.Step(ctx, steps)
	return c.line(output, jsontext.Object{{Name: "path", Value: path}, {Name: "movements", Value: steps}}, err, "%s: %d movements made", path, steps)
}
