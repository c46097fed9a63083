package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/app"
)

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := build{Version: buildVersion(), Commit: commit(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
		var err error
		if b.SQLite, err = app.SQLiteVersion(cmd.Context()); err != nil {
			return err
		}
		if *output == formatJSON {
			return printJSON(c.stdout, b)
		}
		fmt.Fprintf(c.stdout, "observerd %s (commit %s, %s, %s, SQLite %s)\n", b.Version, b.Commit, b.Go, b.Platform, b.SQLite)
		return nil
	}
	return cmd
}

// build says what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SQLite   string `json:"sqlite"`
}

// buildVersion is the linker's version, else that of the module.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// commit is the revision that Go has noted in the binary, if it was asked to.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	switch {
	case settings["vcs.revision"] == "":
		return "unknown"
	case settings["vcs.modified"] == "true":
		return settings["vcs.revision"] + "-modified"
	}
	return settings["vcs.revision"]
}
