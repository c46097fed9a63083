package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
)

// validation is what validate prints with -o json.
type validation struct {
	OK bool `json:"ok"`
	// Problems and Warnings are those of the configuration itself.
	Problems []config.Problem `json:"problems"`
	Warnings []config.Problem `json:"warnings"`
	// Online is what the databases say; nil with --offline, or when the
	// configuration has mistakes.
	Online *admin.Validation `json:"online,omitempty"`
}

// validator is one run of validate.
type validator struct {
	*cli
	offline, strict, sql bool
	sample               int
	output               *format
	timeout              *time.Duration
}

func (c *cli) validateCommand() *cobra.Command {
	v := &validator{cli: c}
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration and the databases in it",
		Long: `Check the configuration and name every mistake in it at once. Then connect to
the coordination database and to the source of every enabled observer, and name
what does not fit: a missing table or column, a key that is not unique, a
timestamp that can be NULL, a right that is not granted and what is lost without
it, a large table that every poll would read whole. Nothing is created or changed.

For each observer, show the SQL that its polls send, the plan of the database
where it gives one, and the first rows as the events that they would become.

Mistakes end with exit code 78, a database that is down with 69.`,
		Example: `  observerd validate
  observerd validate --offline --config new.yaml
  observerd validate --sample 0 --sql=false   say only what is wrong`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.run(cmd.Context()) },
	}
	v.output = outputFlag(cmd)
	v.timeout = timeoutFlag(cmd, 15*time.Second)
	cmd.Flags().BoolVar(&v.offline, "offline", false, "look at the configuration alone, connect to nothing")
	cmd.Flags().BoolVar(&v.strict, "strict", false, "take warnings for mistakes")
	cmd.Flags().BoolVar(&v.sql, "sql", true, "show the SQL that polls of each observer send, and its plan")
	cmd.Flags().IntVar(&v.sample, "sample", 3, "show so many of the first `rows` of each observer as events; 0: read none")
	return cmd
}

func (v *validator) run(ctx context.Context) error {
	if v.sample < 0 {
		return usageError{errors.New("--sample is negative; write 0 for no rows")}
	}
	cfg, warnings, err := v.loadConfig()
	result := validation{Problems: []config.Problem{}, Warnings: append([]config.Problem{}, warnings...)}
	var mistakes *config.Error
	if errors.As(err, &mistakes) {
		result.Problems = mistakes.Problems
	} else if err != nil {
		return err
	}
	found := err
	if err == nil && !v.offline {
		online := admin.Validate(ctx, admin.ValidateOptions{Config: cfg, Logger: v.quietLogger(cfg.Log), Timeout: *v.timeout, Sample: v.sample})
		result.Online, found = &online, online.Err()
	}
	if found == nil && v.strict && result.warnings() > 0 {
		found = &config.Error{Problems: []config.Problem{{Text: "there are warnings, and --strict was given"}}}
	}
	result.OK = found == nil
	if err := v.print(result); err != nil || found == nil {
		return err
	}
	return saidError{found}
}

func (r validation) warnings() int {
	n := len(r.Warnings)
	if r.Online != nil {
		n += r.Online.Warnings()
	}
	return n
}

// print prints the result, and problems to stderr.
func (v *validator) print(r validation) error {
	if *v.output == formatJSON {
		return printJSON(v.stdout, r)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(v.stderr, p)
	}
	warn(v.stderr, r.Warnings)
	if r.Online != nil {
		v.printOnline(*r.Online)
	}
	switch {
	case r.OK && r.warnings() == 0:
		fmt.Fprintf(v.stdout, "%s: ok\n", strings.Join(v.configPaths, ", "))
	case r.OK:
		fmt.Fprintf(v.stdout, "%s: ok, with warnings\n", strings.Join(v.configPaths, ", "))
	}
	return nil
}

func (v *validator) printOnline(online admin.Validation) {
	for _, f := range online.Findings {
		if f.Severity == admin.SeverityWarning {
			fmt.Fprint(v.stderr, "warning: ")
		}
		fmt.Fprintf(v.stderr, "%s: %s\n", f.Subject, f.Text)
	}
	d := online.Database
	fmt.Fprintf(v.stdout, "database %s: %s\n", d.URL, schemaText(d))
	for _, o := range online.Observers {
		state := "reachable"
		if !o.Reachable {
			state = "out of reach"
		}
		fmt.Fprintf(v.stdout, "observer %s: source %s is %s\n", o.ID, o.Source, state)
		v.printObserver(o)
	}
}

// printObserver prints what is known of the polls of an observer.
func (v *validator) printObserver(o admin.ObserverCheck) {
	if v.sql && o.SQL != "" {
		fmt.Fprintf(v.stdout, "  sql:\n%s;\n", indented(o.SQL))
	}
	if v.sql && o.Plan != "" {
		fmt.Fprintf(v.stdout, "  plan:\n%s\n", indented(o.Plan))
	}
	if len(o.Sample) > 0 {
		fmt.Fprintln(v.stdout, "  the first rows as events:")
	}
	for _, e := range o.Sample {
		fmt.Fprintf(v.stdout, "    %s\n", e)
	}
	for _, d := range o.Dead {
		fmt.Fprintf(v.stdout, "  a poison row: %s: %s\n", orDash(oneLine(d.Key)), oneLine(d.Reason))
	}
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

func schemaText(d admin.DatabaseCheck) string {
	switch {
	case d.Reachable:
		return "reachable, schema " + string(d.Schema.State)
	case d.Schema.State == admin.SchemaAbsent:
		return "does not exist yet"
	}
	return "out of reach"
}
