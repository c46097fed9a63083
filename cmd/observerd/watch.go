package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/jsontext/terminal"
)

// watchEvery is how often is printed anew what is watched.
const watchEvery = 2 * time.Second

// watchFlag gives a command the flag --watch.
func watchFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("watch", false, "refresh every 2 s, until interrupted")
}

// watch calls print again and again, each time within the timeout, until the context ends.
// SIGINT is the usual end, and no failure. Once print has gone well, a failure is shown and
// does not end the watch: it may be a failover. On a terminal each text is drawn over the one
// before; JSON, and what goes elsewhere, comes one after the other.
func (c *cli) watch(ctx context.Context, timeout time.Duration, redraw bool, print func(ctx context.Context, w io.Writer) error) error {
	screen, resized := screen{w: c.stdout}, make(chan os.Signal, 1)
	if redraw && terminal.Is(c.stdout) {
		screen.terminal, _ = terminal.AsIs(c.stdout).(*os.File)
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
	}
	defer screen.close()
	for first := true; ; first = false {
		err := screen.show(func(w io.Writer) error {
			return within(ctx, timeout, func(ctx context.Context) error { return print(ctx, w) })
		}, c.stderr, first)
		if err != nil && (first || brokenPipe(err)) {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), signalError{syscall.SIGINT}) {
				return nil
			}
			return context.Cause(ctx)
		case <-resized:
		case <-time.After(watchEvery):
		}
	}
}

// screen is where the texts of a watch go.
type screen struct {
	w io.Writer
	// terminal is drawn over; nil where the texts come one after the other.
	terminal *os.File
}

// show shows a text, or why there is none.
func (s screen) show(print func(io.Writer) error, stderr io.Writer, first bool) error {
	if s.terminal == nil {
		if !first {
			fmt.Fprintln(s.w)
		}
		err := print(s.w)
		if err != nil && !first && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(stderr, "observerd: %v\n", err)
		}
		return err
	}
	var text bytes.Buffer
	err := print(&text)
	if err != nil && (first || errors.Is(err, context.Canceled)) {
		return err
	}
	if err != nil {
		fmt.Fprintf(&text, "%s: %s\n", time.Now().Format(time.TimeOnly), terminal.Escaped(err.Error()))
	}
	_, err = io.WriteString(s.terminal, frame(text.String(), terminal.Height(s.terminal)))
	return err
}

// The sequences of a terminal.
const (
	toTop, clearLine, clearRest = "\x1b[H", "\x1b[K", "\x1b[J"
	noWrap, wrap                = "\x1b[?7l", "\x1b[?7h"
)

// frame draws a text over the one before. Lines that are too long are cut off by the
// terminal, and those below its height are counted. A height of 0 is unknown.
func frame(text string, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if more := len(lines) - height + 1; height > 1 && len(lines) >= height {
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… and %d more lines", more+1))
	}
	return noWrap + toTop + strings.Join(lines, clearLine+"\n") + clearLine + "\n" + clearRest + wrap
}

// close leaves the terminal as it was: the last text stays.
func (s screen) close() {
	if s.terminal != nil {
		_, _ = io.WriteString(s.terminal, wrap)
	}
}

// terminalLines is how many lines [frame] draws without cutting; 0 where stdout is no
// terminal, or one of unknown height.
func (c *cli) terminalLines() int {
	if f, ok := terminal.AsIs(c.stdout).(*os.File); ok && terminal.Is(f) {
		return max(0, terminal.Height(f)-1)
	}
	return 0
}
