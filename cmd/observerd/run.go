package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/sample"
)

// stopGrace is what a stop may take beyond the time that polls have to finish.
const stopGrace = 15 * time.Second

func (c *cli) runCommand() *cobra.Command {
	var feed feeder
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: `Run a node until SIGINT or SIGTERM. Polls then finish their chunk, leases are
given back, and the exit code is 0; a second signal ends the node at once.

Logs go to stderr. stdout carries the events of stdout sinks, one JSON a line.`,
		Example: `  observerd run
  observerd run --config /etc/observerd/config.yaml
  observerd run --with-sample | jq .data`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("with-sample") && cmd.Flags().Changed("sample-source") {
				return usageError{errors.New("--sample-source needs --with-sample")}
			}
			return c.runNode(cmd.Context(), feed)
		},
	}
	cmd.Flags().BoolVar(&feed.wanted, "with-sample", false, "make and feed the sample warehouse while the node runs")
	cmd.Flags().StringVar(&feed.source, "sample-source", "warehouse", "the `source` that is the sample warehouse, an SQLite file")
	return cmd
}

func (c *cli) runNode(ctx context.Context, feed feeder) (err error) {
	cfg, warnings, err := c.loadConfig()
	if err != nil {
		warn(c.stderr, warnings)
		return err
	}
	log := newLogger(c.stderr, cfg.Log, cfg.Log.SlogLevel())
	for _, p := range warnings {
		log.Warn("Configuration can be improved", "warning", p.String())
	}
	if err := app.CheckRights(cfg); err != nil {
		return err
	}
	stopFeeding, err := feed.start(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopFeeding()) }()
	ctx, out := watchPipe(ctx, c.stdout)
	node, err := app.New(ctx, app.Options{Config: cfg, Version: buildVersion(), Logger: log, Stdout: out})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return serve(ctx, node, cfg.Scheduler.ShutdownTimeout+stopGrace)
}

// serve runs the node until ctx ends or the node cannot go on.
func serve(ctx context.Context, node *app.App, patience time.Duration) error {
	node.Start()
	select {
	case <-ctx.Done():
	case <-node.Done():
	}
	failure := node.Err()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := node.Stop(stopping); err != nil {
		failure = errors.Join(failure, fmt.Errorf("stop: %w", err))
	}
	if errors.Is(context.Cause(ctx), errPipeClosed) {
		failure = errors.Join(failure, errPipeClosed)
	}
	return failure
}

// feeder keeps the sample warehouse moving beside a node.
type feeder struct {
	wanted bool
	source string
}

// start returns the function that ends the feeding and waits for it.
func (f feeder) start(ctx context.Context, cfg *config.Config, log *slog.Logger) (stop func() error, err error) {
	if !f.wanted {
		return func() error { return nil }, nil
	}
	path, err := f.path(cfg)
	if err != nil {
		return nil, err
	}
	warehouse, err := sample.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	log = log.With("component", "sample")
	log.Info("Feeding the sample warehouse", "path", path)
	ctx, cancel := context.WithCancel(ctx)
	var feeding sync.WaitGroup
	feeding.Go(func() {
		if err := warehouse.Run(ctx, 0); err != nil {
			log.Error("Error feeding the sample warehouse; it stands still from now on", "err", err)
		}
	})
	return func() error {
		cancel()
		feeding.Wait()
		return warehouse.Close()
	}, nil
}

// path is the file of the source that is the sample warehouse.
func (f feeder) path(cfg *config.Config) (string, error) {
	src, ok := cfg.Sources[f.source]
	if !ok {
		return "", usageError{fmt.Errorf("--sample-source: the configuration has no source %q", f.source)}
	}
	if src.URL.Dialect() != config.SQLite {
		return "", usageError{fmt.Errorf("--sample-source: the source %s is no SQLite file; the sample warehouse is one", f.source)}
	}
	return src.URL.Path(), nil
}
