package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c *cli) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema ID",
		Short: "Print the JSON Schema of an observer's events",
		Long: `Print the JSON Schema (draft 2020-12) of an observer's events, by what its source says
of the columns now. docs/events.md says what the attributes mean. Nothing is written to
any database.`,
		Example:           `  observerd schema warehouse-orders > warehouse-orders.schema.json`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
	}
	timeout := timeoutFlag(cmd, time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator) error {
			schema, err := operator.EventSchema(ctx, args[0])
			if err == nil {
				_, err = fmt.Fprintf(c.stdout, "%s\n", schema)
			}
			return err
		})
	}
	return cmd
}
