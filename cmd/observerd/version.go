package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: takes(0, 0)}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.printVersion(*output) }
	return cmd
}

func (c *cli) printVersion(output format) error {
	b := build{
		Version: buildVersion(), Commit: commit(), Date: commitDate(),
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, SQLite: admin.SQLiteVersion,
	}
	return c.line(output, b, nil, "observerd %s (commit %s of %s, %s, %s, SQLite %s)", b.Version, b.Commit, b.Date, b.Go, b.Platform, b.SQLite)
}

// build says what this binary was made of.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Date is when that commit was made, in RFC 3339: the same for everybody
	// who builds it.
	Date     string `json:"date"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SQLite   string `json:"sqlite"`
}

// revision and committed are set by the linker, -X main.revision=… and
// -X main.committed=…: the commit that this binary was built of, with
// "-modified" behind it when files differed from it, and its date in RFC 3339.
// Both are empty where the build did not know them.
var revision, committed string

// unknown is what a build without git says in the place of what git knows.
const unknown = "unknown"

// buildVersion is the linker's version, else that of the module.
func buildVersion() string { return cmp.Or(version, notes()["version"], unknown) }

// commit is the linker's revision, else that which Go has noted in the binary,
// if it was asked to.
func commit() string {
	if revision != "" {
		return revision
	}
	noted := notes()
	if noted["vcs.revision"] != "" && noted["vcs.modified"] == "true" {
		return noted["vcs.revision"] + "-modified"
	}
	return cmp.Or(noted["vcs.revision"], unknown)
}

// commitDate is the linker's date of the commit, else Go's.
func commitDate() string { return cmp.Or(committed, notes()["vcs.time"], unknown) }

// notes are the version of the module and the settings of the build, as Go has noted them in the binary.
func notes() map[string]string {
	settings := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		settings["version"] = info.Main.Version
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	return settings
}

func (c *cli) migrateUp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the pending migrations",
		Long: `Run the pending migrations, under a lock. Running nodes need not be stopped.
'observerd run' does the same at its start, unless database.auto-migrate is false.`,
		Args: takes(0, 0),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 10*time.Minute)
	by := byFlags(cmd)
	return c.operates(cmd, timeout, admin.OperatorOptions{Create: true}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		before, after, err := operator.Migrate(ctx, by())
		if before.Current == after.Current {
			return c.line(*output, after, err, "schema is up to date (version %d)", after.Current)
		}
		return c.line(*output, after, err, "schema migrated from version %d to %d", before.Current, after.Current)
	})
}

func (c *cli) migrateStatus() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show the version of the schema, changing nothing", Args: takes(0, 0)}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 15*time.Second)
	return c.operates(cmd, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		schema, err := operator.Schema(ctx)
		text := fmt.Sprintf("schema is %s (database %d, binary %d)", schema.State, schema.Current, schema.Target)
		if schema.State == admin.SchemaAbsent {
			text = "the coordination database does not exist yet; 'observerd migrate up' creates it"
		}
		return cmp.Or(c.line(*output, schema, err, "%s", text), schema.Err())
	})
}
