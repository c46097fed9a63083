package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the manual pages that the packages install, one for each
// command. They stand on the texts of the help alone, so there is nothing to keep
// in step.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages into a folder",
		Args:   takes(1, 1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			// The generated mark would hold the day of the build.
			root.DisableAutoGenTag = true
			// A table: in a code block its lines stay as they are.
			root.Long += "\n\n```\n" + exitCodesTopic().Long + "\n```"
			if err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Path: args[0], CommandSeparator: "-", Header: manHeader()}); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			return nil
		},
	}
}

// manHeader has the date of the commit, so that the pages of one commit are the
// same whenever they are written; a build without it has the present day.
func manHeader() *doc.GenManHeader {
	h := &doc.GenManHeader{Section: "1", Source: "observerd " + buildVersion(), Manual: "User Commands"}
	if date, err := time.Parse(time.RFC3339, commitDate()); err == nil {
		h.Date = &date
	}
	return h
}
