package main

import (
	"github.com/spf13/cobra"
)

// completeObserver offers the ids of the configuration. The database is not
// asked: a completion must be quick.
func (c *cli) completeObserver(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := c.loadConfig()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, o := range cfg.Observers {
		ids = append(ids, cobra.CompletionWithDesc(o.ID, o.Type+" from "+o.Source))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
