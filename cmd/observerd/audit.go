package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/status"
)

func (c *cli) auditCommand() *cobra.Command {
	var f admin.ActFilter
	var lock string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what operators did, newest first",
		Long: `List what operators did to observers, locks, accounts, nodes and the schema, newest first: who, when and
why. It is kept for database.retention.audit.`,
		Example: `  observerd audit --since 24h
  observerd audit --observer orders --action reset
  observerd audit --by alice@ops1 --limit 0 -o json`,
		Args: takes(0, 0),
	}
	flags := cmd.Flags()
	flags.Var(positive(&f.Since), "since", "within this time, such as 24h")
	flags.StringVar(&f.Action, "action", "", "only this action, such as reset, accept, retry-dead or steal-lock")
	flags.StringVar(&f.Actor, "by", "", "only what this user did")
	flags.StringVar(&f.Subject, "observer", "", "only what was done to this observer")
	_ = cmd.RegisterFlagCompletionFunc("observer", c.completeObserver)
	flags.StringVar(&lock, "lock", "", "only what was done to this lock, such as page:fs-1:7")
	limit := limitFlag(cmd)
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.Limit = oneMore(*limit)
		switch {
		case lock != "" && f.Subject != "":
			return usageError{errors.New("--observer and --lock exclude each other")}
		case lock != "":
			f.Subject = lock
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator) error {
			acts, err := operator.Acts(ctx, f)
			acts = limited(c, *limit, acts)
			return answer(c.stdout, *output, acts, err, func() error {
				return table(c.stdout, []string{"AT", "BY", "ACTION", "SUBJECT", "DETAIL"}, fn.Each(acts, func(a status.Act) []string {
					return []string{timestamp(a.At), orDash(a.Actor), a.Action, a.Subject, orDash(a.Detail)}
				}))
			})
		})
	}
	return cmd
}
