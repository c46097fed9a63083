package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c *cli) migrateCommand() *cobra.Command {
	return group("migrate", "Bring the coordination database up to date", c.migrateUp(), c.migrateStatus())
}

func (c *cli) migrateUp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the pending migrations",
		Long: `Run the pending migrations, under a lock. Nodes that run need not be stopped.
'observerd run' does the same at its start, unless database.auto-migrate is false.`,
		Args: takes(0, 0),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 10*time.Minute)
	by := byFlags(cmd)
	return c.operates(cmd, timeout, admin.OperatorOptions{Create: true}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		before, after, err := operator.Migrate(ctx, by())
		switch {
		case err != nil:
			return err
		case *output == formatJSON:
			return printJSON(c.stdout, after)
		case before.Current == after.Current:
			fmt.Fprintf(c.stdout, "schema is up to date (version %d)\n", after.Current)
		default:
			fmt.Fprintf(c.stdout, "schema migrated from version %d to %d\n", before.Current, after.Current)
		}
		return nil
	})
}

func (c *cli) migrateStatus() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show the version of the schema, changing nothing", Args: takes(0, 0)}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 15*time.Second)
	return c.operates(cmd, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		schema, err := operator.Schema(ctx)
		switch {
		case err != nil:
			return err
		case *output == formatJSON:
			if err := printJSON(c.stdout, schema); err != nil {
				return err
			}
		case schema.State == admin.SchemaAbsent:
			fmt.Fprintln(c.stdout, "the coordination database does not exist yet; 'observerd migrate up' makes it")
		default:
			fmt.Fprintf(c.stdout, "schema is %s (database %d, binary %d)\n", schema.State, schema.Current, schema.Target)
		}
		return schema.Err()
	})
}
