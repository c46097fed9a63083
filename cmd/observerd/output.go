package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/observerd/observerd/internal/jsontext"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/status"
)

// format is how a command prints its result.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// checked is a [pflag.Value]. kind is what the help calls it, read takes its text, or
// says what to write instead.
type checked struct {
	kind, text string
	read       func(text string) error
}

func (c *checked) Set(text string) error {
	c.text = text
	return c.read(text)
}

func (c *checked) String() string { return c.text }

func (c *checked) Type() string { return c.kind }

// outputFlag gives a command the flag -o.
func outputFlag(cmd *cobra.Command) *format {
	f := formatText
	cmd.Flags().VarP(&checked{"format", string(f), func(text string) error {
		if f = format(text); f != formatText && f != formatJSON {
			return errors.New("use text or json")
		}
		return nil
	}}, "output", "o", "print text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// timeoutFlag gives a command the flag --timeout.
func timeoutFlag(cmd *cobra.Command, preset time.Duration) *time.Duration {
	timeout := preset
	cmd.Flags().Var(positive(&timeout), "timeout", "give up after this time")
	return &timeout
}

// positive is a flag for a duration above 0. Without that limit a slip of the pen would end
// a command as a database that is down does, or a node that is ill.
func positive(d *time.Duration) *checked {
	return &checked{"duration", d.String(), func(text string) (err error) {
		if *d, err = time.ParseDuration(text); err != nil || *d <= 0 {
			return errors.New("use a time above 0 and below 2562047h, in h, m or s, such as 30s or 48h")
		}
		return nil
	}}
}

// limitFlag gives a command the flag --limit: how many rows it lists, 0 for all.
func limitFlag(cmd *cobra.Command) *int {
	limit := 100
	cmd.Flags().Var(&checked{"number", strconv.Itoa(limit), func(text string) error {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errors.New("use a number from 0, which means all")
		}
		limit = int(n)
		return nil
	}}, "limit", "the most that are listed; 0 means all")
	return &limit
}

// renamed lets a flag be set by its former name, which no help shows.
func renamed(cmd *cobra.Command, former, now string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == former {
			name = now
		}
		return pflag.NormalizedName(name)
	})
}

// oneMore is what the database is asked for, to see that there are more than the limit.
func oneMore(limit int) int { return either(limit == 0, 0, limit+1) }

// limited returns the rows that are listed, and says on stderr that there are more.
func limited[T any](c *cli, limit int, rows []T) []T {
	if limit == 0 || len(rows) <= limit {
		return rows
	}
	fmt.Fprintf(c.stderr, "observerd: there are more than %d; --limit 0 lists all\n", limit)
	return rows[:limit]
}

// printJSON prints one indented value.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(terminal.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(jsontext.Shaped(value))
}

// answer prints a result as JSON, or as text does. An error is there instead of a result.
func answer(w io.Writer, output format, result any, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case output == formatJSON:
		return printJSON(w, result)
	}
	return text()
}

// line is answer in one line of text.
func (c *cli) line(output format, result any, err error, text string, args ...any) error {
	return answer(c.stdout, output, result, err, func() error {
		fmt.Fprintf(c.stdout, text+"\n", args...)
		return nil
	})
}

// table prints rows of cells in aligned columns, under their headings.
func table(w io.Writer, headings []string, rows [][]string) error {
	return painter(false).table(w, headings, rows)
}

// painter paints what needs attention, on a terminal alone.
type painter bool

// painter is on where stdout is a terminal, unless NO_COLOR is set.
func (c *cli) painter() painter {
	forbidden := slices.ContainsFunc(c.environ, func(variable string) bool {
		value, ok := strings.CutPrefix(variable, "NO_COLOR=")
		return ok && value != ""
	})
	return painter(terminal.Is(c.stdout) && !forbidden)
}

// colored is stdout for a table with colors, which escapes its cells.
func (c *cli) colored() io.Writer {
	return either(bool(c.painter()), terminal.AsIs(c.stdout), c.stdout)
}

// color is the parameter of a terminal's sequence. All have one length, so that cells of
// any color are aligned.
type color string

const (
	plain  color = "39"
	red    color = "31"
	yellow color = "33"
)

func (p painter) paint(text string, c color) string {
	if !p {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[39m"
}

// table is [table], with colors.
func (p painter) table(w io.Writer, headings []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for n, row := range append([][]string{headings}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cell = terminal.Escaped(strings.Join(strings.Fields(cell), " ")) // Before its width is taken.
			c := plain
			if n > 0 && i < len(headings) {
				c = colorOf(headings[i], cell)
			}
			cells[i] = p.paint(cell, c)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// colorOf is the color of a cell in the column of that heading.
func colorOf(heading, cell string) color {
	switch heading {
	case "LAST ERROR", "WHY", "ERROR":
		if cell != "-" {
			return red
		}
	case "LEVEL":
		switch cell {
		case string(status.LevelFailing):
			return red
		case string(status.LevelDegraded):
			return yellow
		}
	case "UP":
		if cell == "gone" {
			return red
		}
	case "STATE", "OUTCOME":
		switch word, _, _ := strings.Cut(cell, " "); word {
		case "backoff", "error", "lost", "fenced":
			return red
		case "paused", "conflict", "unreachable", "outdated", "not":
			return yellow
		}
	case "UNREACHABLE", "OUTDATED":
		if cell != "-" {
			return yellow
		}
	case "TTL LEFT":
		if strings.HasPrefix(cell, "expired") {
			return yellow
		}
	}
	return plain
}

// ago words how long before now a time was.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	return span(max(0, now.Sub(then))) + " ago" // The clocks of hosts differ.
}

// until words how long after now a time is.
func until(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return "in " + span(then.Sub(now))
}

func timestamp(t time.Time) string { return jsontext.Timestamp(t) }

// either returns yes where is holds, and no otherwise. Both are evaluated.
func either[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

// span words a duration with at most two units.
func span(d time.Duration) string { return status.Span(d) }

// orDash stands in for an empty cell.
func orDash(text string) string { return cmp.Or(text, "-") }

func number(n int64) string { return strconv.FormatInt(n, 10) }
