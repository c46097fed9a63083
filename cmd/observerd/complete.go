package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completeObservers offers the ids that are not there yet.
func (c *cli) completeObservers(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	ids, directive := c.completeObserver(cmd, nil, word)
	return slices.DeleteFunc(ids, func(id string) bool {
		id, _, _ = strings.Cut(id, "\t")
		return slices.Contains(args, id)
	}), directive
}

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
