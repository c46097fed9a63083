package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// format is how a command prints its result.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if text != string(formatText) && text != string(formatJSON) {
		return errors.New("write text or json")
	}
	*f = format(text)
	return nil
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// outputFlag gives a command the flag -o.
func outputFlag(cmd *cobra.Command) *format {
	f := formatText
	cmd.Flags().VarP(&f, "output", "o", "print text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// timeoutFlag gives a command the flag --timeout.
func timeoutFlag(cmd *cobra.Command, preset time.Duration) *time.Duration {
	timeout := preset
	cmd.Flags().Var((*positive)(&timeout), "timeout", "give up after this time")
	return &timeout
}

// positive is a duration above 0. Without that limit a slip of the pen would end
// a command as a database that is down does, or a node that is ill.
type positive time.Duration

// Set implements pflag.Value.
func (p *positive) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("write a time above 0, such as 30s")
	}
	*p = positive(d)
	return nil
}

// String implements pflag.Value.
func (p *positive) String() string { return time.Duration(*p).String() }

// Type implements pflag.Value.
func (p *positive) Type() string { return "duration" }

// printJSON prints one indented value.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(jsonWriter(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table prints rows of cells in aligned columns, under their headings.
func table(w io.Writer, headings []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{headings}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = escaped(strings.Join(strings.Fields(cell), " ")) // Before its width is taken.
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// ago words how long before now a time was.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	return span(now.Sub(then)) + " ago"
}

// span rounds a duration to what a person wants to know.
func span(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	case d >= time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// orDash stands in for an empty cell.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
