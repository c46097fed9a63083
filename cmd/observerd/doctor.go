package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/status"
)

// defaultWatch catches what nodes write that are at work, without making a
// person wait.
const defaultWatch = 5 * time.Second

func (c *cli) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the coordination database, its lock table and the nodes on it",
		Long: `Examine the coordination database and the place of a node in it: the lock
table INT_LOCK and its rows, clocks, TTLs, keys, the other nodes, the settings of
the server, the rights of the role. Nothing is written, and no lock is taken. The
tables of observerd need not exist yet: it can be run against the database of
Java nodes before the first node of observerd. Each sink of the configuration is
asked whether it can be used. 'observerd validate' examines the sources.

Each finding is ok, a note, a warning or a problem. Problems end with exit code 3,
warnings too with --strict. If nothing can be examined there are no findings: a
database that is down ends with 69, a role, password, database or setting that the
server refuses and a file that is no database with 78, and stderr says what to fix.

INT_LOCK is watched for a while, because the clock of another node can only be
seen in a row that it has just written. Watch for longer than the interval of
the Java nodes to see all of them.`,
		Example: `  observerd doctor
  observerd doctor --watch 1m         see every node at work at least once
  observerd doctor -o json | jq '.findings[] | select(.severity == "problem")'`,
		Args: takes(0, 0),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 30*time.Second)
	watch := cmd.Flags().Duration("watch", defaultWatch, "how long to watch INT_LOCK; 0 looks once")
	strict := cmd.Flags().Bool("strict", false, "treat warnings as problems")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *watch < 0 {
			return usageError{errors.New("--watch is negative")}
		}
		cfg, err := c.configure()
		if err != nil {
			return err
		}
		var diagnosis admin.Diagnosis
		err = within(cmd.Context(), *timeout+*watch, func(ctx context.Context) (err error) {
			diagnosis, err = admin.Doctor(ctx, cfg, *watch)
			return err
		})
		if err := answer(c.stdout, *output, diagnosis, err, func() error { return printDiagnosis(c.stdout, diagnosis) }); err != nil {
			return err
		}
		if diagnosis.Problems > 0 || *strict && diagnosis.Warnings > 0 {
			return codeError{exitFindings, saidError{errors.New("the doctor has found problems")}} // They are told in full on stdout.
		}
		return nil
	}
	return cmd
}

// printDiagnosis prints one line for what is fine, and a paragraph for each other finding.
func printDiagnosis(w io.Writer, d admin.Diagnosis) error {
	fmt.Fprintf(w, "%s\n\n", d.URL)
	for _, finding := range d.Findings {
		fmt.Fprintf(w, "%-8s  %s: %s\n", finding.Severity, finding.Check, finding.Saw)
		if finding.Why != "" {
			fmt.Fprintf(w, "          why: %s\n", finding.Why)
		}
		if finding.Do != "" {
			fmt.Fprintf(w, "          do:  %s\n", finding.Do)
		}
	}
	fmt.Fprintf(w, "\n%s, %s, %s\n", status.Plural(d.Problems, "problem", "problems"), status.Plural(d.Warnings, "warning", "warnings"), status.Plural(d.Notes, "note", "notes"))
	return nil
}
