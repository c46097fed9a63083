package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/status"
)

// validation is what validate prints with -o json.
type validation struct {
	OK bool `json:"ok"`
	// Verdict is the closing line of the text, which names the file before it.
	Verdict string `json:"verdict"`
	Config  string `json:"config"`
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
	offline, strict, sql, fullSQL bool
	noted                         bool // what the SQL lacks has been said
	sample                        int
	output                        *format
	timeout                       *time.Duration
}

func (c *cli) validateCommand() *cobra.Command {
	v := &validator{cli: c}
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration and the databases in it",
		Long: `Check the configuration and list all mistakes in it. Then connect to the coordination
database, to the source of every enabled observer, to every sink and to every lock
provider, and list problems: a missing table or column, a key that is not unique, a
timestamp that can be NULL, a right that is not granted and the consequence, a large
table that every poll would read whole. Nothing is created or changed.

For each observer, show the SQL of its polls, the plan of the database where it
gives one, the first rows as the events that they would become, and how many rows
of history the first polls will make events of. Rows that cannot become an event
are poison; an observer with mostly poison rows is not ready. The SQL names only
columns; --full-sql shows it as it is sent, with the conversions of values and the
length guards that skip values that are too large.

Warnings, then mistakes come last, on stderr, before the line that says how many
observers are ready. Nothing is logged unless --log-level is given.

Mistakes end with exit code 78, a database that is down with 69.`,
		Example: `  observerd validate
  observerd validate --offline --config new.yaml
  observerd validate --sample 0 --sql=false   say only what is wrong`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return v.run(cmd.Context()) },
	}
	v.output = outputFlag(cmd)
	v.timeout = timeoutFlag(cmd, 15*time.Second)
	cmd.Flags().BoolVar(&v.offline, "offline", false, "check only the configuration, connect to nothing")
	cmd.Flags().BoolVar(&v.strict, "strict", false, "treat warnings as mistakes")
	cmd.Flags().BoolVar(&v.sql, "sql", true, "show the SQL of the polls of each observer, and its plan")
	cmd.Flags().BoolVar(&v.fullSQL, "full-sql", false, "show the SQL as it is sent, with the conversions and length guards of columns")
	cmd.Flags().IntVar(&v.sample, "sample", 3, "show so many of the first `rows` of each observer as events, and count its history; 0: do neither")
	return cmd
}

func (v *validator) run(ctx context.Context) error {
	if v.sample < 0 {
		return usageError{errors.New("--sample is negative; use 0 for no rows")}
	}
	if v.fullSQL && !v.sql {
		return usageError{errors.New("--full-sql shows what --sql=false leaves out; use one of them")}
	}
	cfg, warnings, err := v.loadConfig()
	result := validation{Config: strings.Join(v.configPaths, ", "), Problems: []config.Problem{}, Warnings: append([]config.Problem{}, warnings...)}
	if mistakes, ok := errors.AsType[*config.Error](err); ok {
		result.Problems = mistakes.Problems
	} else if err != nil {
		return err
	}
	found := err
	if err == nil && !v.offline {
		online := admin.Validate(ctx, admin.ValidateOptions{Config: cfg, Logger: v.silentLogger(cfg.Log), Timeout: *v.timeout, Sample: v.sample})
		result.Online, found = &online, online.Err()
	}
	if found == nil && v.strict && result.warnings() > 0 {
		found = &config.Error{Problems: []config.Problem{{Text: "there are warnings, and --strict was given"}}}
	}
	result.OK, result.Verdict = found == nil, v.verdict(result)
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

// verdict says how many observers are ready.
func (v *validator) verdict(r validation) string {
	const unasked = "the databases were not asked"
	var parts []string
	switch {
	case len(r.Problems) > 0:
		parts = []string{status.Plural(len(r.Problems), "mistake", "mistakes"), unasked}
	case r.Online == nil:
		parts = []string{"no mistakes", unasked}
	default:
		parts = []string{observersReady(r.Online.Ready(), len(r.Online.Observers))}
		for _, subject := range r.Online.NotReady() {
			name := map[string]string{"node": "this node", "database": "the coordination database"}[subject]
			parts = append(parts, cmp.Or(name, subject)+" is not ready")
		}
	}
	if n := r.warnings(); n > 0 {
		text := status.Plural(n, "warning", "warnings")
		if v.strict {
			text += ", taken for mistakes"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func observersReady(ready, all int) string {
	switch missing := all - ready; {
	case all == 0:
		return "no observer is enabled"
	case missing == 0:
		return status.Plural(all, "observer is ready", "observers are ready")
	case missing == 1:
		return fmt.Sprintf("1 of %s is not ready", status.Plural(all, "observer", "observers"))
	default:
		return fmt.Sprintf("%d of %s are not ready", missing, status.Plural(all, "observer", "observers"))
	}
}

// print prints the result, warnings and mistakes to stderr.
func (v *validator) print(r validation) error {
	if *v.output == formatJSON {
		return printJSON(v.stdout, r)
	}
	if r.Online != nil {
		if err := v.printOnline(*r.Online); err != nil {
			return err
		}
	}
	warn(v.stderr, r.Warnings)
	for _, p := range r.Problems {
		fmt.Fprintln(v.stderr, p)
	}
	if r.Online != nil {
		v.printFindings(r.Online.Findings)
	}
	fmt.Fprintf(v.stdout, "%s: %s\n", strings.Join(v.configPaths, ", "), r.Verdict)
	return nil
}

func (c *cli) printFindings(findings []admin.Finding) {
	for _, f := range findings {
		if f.Severity == admin.SeverityWarning {
			fmt.Fprint(c.stderr, "warning: ")
		}
		fmt.Fprintf(c.stderr, "%s: %s\n", f.Subject, f.Text)
	}
}

func (v *validator) printOnline(online admin.Validation) error {
	d, apart := online.Database, strings.NewReplacer("; ", "\n  ") // What a provider lacks, on a line of its own.
	fmt.Fprintf(v.stdout, "database %s: %s\nlocks in %s\n", d.URL, schemaText(d), apart.Replace(d.Locks))
	for _, id := range slices.Sorted(maps.Keys(online.LockProviders)) {
		fmt.Fprintf(v.stdout, "lock provider %s: locks in %s\n", id, apart.Replace(online.LockProviders[id]))
	}
	for _, o := range online.Observers {
		fmt.Fprintf(v.stdout, "observer %s: source %s is %s\n", o.ID, o.Source, either(o.Reachable, "reachable", "out of reach"))
		if err := v.printObserver(o); err != nil {
			return err
		}
	}
	return nil
}

// printObserver prints what is known of the polls of an observer.
func (v *validator) printObserver(o admin.ObserverCheck) error {
	if text := o.SQL; v.sql && text != "" {
		note := ""
		switch {
		case v.fullSQL:
			text = o.FullSQL
		case text != o.FullSQL && !v.noted:
			note, v.noted = ", without length guards and conversions (--full-sql shows it as sent)", true
		}
		fmt.Fprintf(v.stdout, "  sql%s:\n%s;\n", note, indented(text))
	}
	if v.sql && o.Plan != "" {
		fmt.Fprintf(v.stdout, "  plan:\n%s\n", indented(o.Plan))
	}
	if err := printSample(v.stdout, o.Sample); err != nil {
		return err
	}
	if o.History != nil {
		fmt.Fprintf(v.stdout, "  %s\n", o.History.Text)
	}
	if len(o.Dead) > 0 {
		fmt.Fprintf(v.stdout, "  %s among the first rows:\n", status.Plural(len(o.Dead), "poison row", "poison rows"))
	}
	for _, d := range o.Dead {
		fmt.Fprintf(v.stdout, "    %s: %s\n", orDash(oneLine(d.Key)), oneLine(d.Reason))
	}
	return nil
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

// sampleWidth is how many characters of a value a sample shows.
const sampleWidth = 40

// sampled is what a sample shows of an event, apart from its type.
type sampled struct {
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Time    string `json:"time"`
	Data    object `json:"data"`
}

// object is a JSON object whose members keep their order.
type object struct {
	names  []string
	values map[string]json.RawMessage
}

func (o *object) UnmarshalJSON(text []byte) error {
	o.values = make(map[string]json.RawMessage)
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name := fmt.Sprint(token)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		o.names, o.values[name] = append(o.names, name), value
	}
	return nil
}

// printSample prints events as a table: their subjects, times and data.
func printSample(w io.Writer, events []json.RawMessage) error {
	rows, columns := make([]sampled, len(events)), []string(nil)
	for i, e := range events {
		if err := json.Unmarshal(e, &rows[i]); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		for _, name := range rows[i].Data.names {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = []string{cut(r.Subject), r.Time}
		for _, name := range columns {
			cells[i] = append(cells[i], cut(valueText(r.Data.values[name])))
		}
	}
	var text bytes.Buffer
	if err := table(&text, append([]string{"SUBJECT", "TIME"}, columns...), cells); err != nil {
		return err
	}
	fmt.Fprintf(w, "  the first rows as events of type %s:\n%s\n", rows[0].Type, indented(string(bytes.TrimRight(text.Bytes(), "\n"))))
	return nil
}

// valueText is a text without its quotation marks, unless it is empty, and any other
// value as JSON writes it.
func valueText(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && text != "" && !bytes.Equal(value, []byte("null")) {
		return text
	}
	return string(value)
}

// cut shortens a value that would make the table too wide.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= sampleWidth {
		return text
	}
	return string([]rune(text)[:sampleWidth-1]) + "…"
}
