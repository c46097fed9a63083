package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
)

// quickInterval shows a change within seconds.
const quickInterval = 2 * time.Second

// quickRun is what 'run' polls without a file.
type quickRun struct {
	*cli
	options admin.QuickOptions
}

func (c *cli) quickFlags(cmd *cobra.Command) *quickRun {
	q := &quickRun{cli: c}
	flags := cmd.Flags()
	flags.StringVar(&q.options.URL, "source", "", "print the events of the database at this `URL`, as 'observerd init' takes it, without a configuration file")
	flags.StringArrayVar(&q.options.Tables, "table", nil, "with --source: a `table` to poll; repeat it for more; default: those that 'observerd init' chooses")
	flags.StringVar(&q.options.Timestamp, "timestamp", "", "with --table: the `column` that says when a row changed")
	flags.StringSliceVar(&q.options.Key, "key", nil, "with --table: the `columns` that identify a row, with commas between; default: the primary key")
	flags.StringVar(&q.options.PasswordFile, "password-file", "", "with --source: a `file` with the password")
	return q
}

// check refuses flags that exclude each other.
func (q *quickRun) check(cmd *cobra.Command, feed feeder) error {
	given := cmd.Flags().Changed
	if !given("source") {
		for _, flag := range []string{"table", "timestamp", "key", "password-file"} {
			if given(flag) {
				return usageError{fmt.Errorf("--%s needs --source; in a configuration file, set it there", flag)}
			}
		}
		return nil
	}
	switch {
	case given("config"):
		return usageError{errors.New("--source and --config exclude each other: --source needs no file; leave one of them out")}
	case bool(feed):
		return usageError{errors.New("--source and --with-sample exclude each other; leave one of them out")}
	}
	return nil
}

// run runs a node whose configuration and coordination database are removed at the end.
func (q *quickRun) run(ctx context.Context) (err error) {
	q.options.Timeout = operateTimeout
	if q.options.Password, err = passwordIn(q.options.PasswordFile); err != nil {
		return err
	}
	text, settings, err := admin.Quick(ctx, q.options)
	if err != nil {
		return argumentFault(err)
	}
	dir, err := os.MkdirTemp("", "observerd-")
	if err != nil {
		return err
	}
	interrupts.removes(dir)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	q.configPaths = []string{filepath.Join(dir, "config.yaml")}
	if err := writeOwn(q.configPaths[0], text, false); err != nil {
		return err
	}
	settings["database.url"] = "sqlite:" + filepath.Join(dir, "observerd.db")
	settings["scheduler.observer.fixed-delay"] = quickInterval.String()
	settings["http.listen"], settings["log.level"] = "", "warn"
	q.presets = settings
	if err := q.look(ctx); err != nil {
		return err
	}
	return q.runNode(ctx, false)
}

// look checks the tables before the first poll, which would be tried again and again.
func (q *quickRun) look(ctx context.Context) error {
	cfg, err := q.configure()
	if err != nil {
		return err
	}
	checked := admin.Validate(ctx, admin.ValidateOptions{Config: cfg, Logger: q.silentLogger(cfg.Log), Timeout: operateTimeout})
	q.printFindings(checked.Findings)
	if err := checked.Err(); err != nil {
		if exitCode(err) == exitConfiguration {
			fmt.Fprintln(q.stderr, "here --table, --timestamp and --key set what a file has at table, timestamp and key")
		}
		return saidError{err}
	}
	tables := fn.Distinct(fn.Each(cfg.Observers, func(o config.Observer) string { return o.Table }))
	fmt.Fprintf(q.stderr, "polling %s of %s every %s; the coordination database is temporary: 'observerd init' writes a configuration that lasts\n",
		strings.Join(tables, ", "), cfg.Sources[cfg.Observers[0].Source].URL, span(cfg.Types()[0].Interval))
	return nil
}
