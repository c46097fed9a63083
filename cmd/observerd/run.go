package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/systemd"
)

func (c *cli) runCommand() *cobra.Command {
	var feed feeder
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: `Run a node until SIGINT or SIGTERM. Polls then finish their chunk, leases are
released, and the exit code is 0; a second signal ends the node at once.

SIGHUP reloads the configuration: the node stops gracefully, and one with the
new configuration replaces it in the same process. An invalid configuration
changes nothing; the log names its mistakes. The SIGHUP of a terminal
that was closed ends the node as SIGTERM does, if its log went to the terminal.

Logs go to stderr. stdout carries the events of stdout sinks, one a line: as JSON,
or on a terminal in columns for people (format: json and format: pretty).

With --source the node needs no configuration file: it polls tables of that database
every 2 seconds and prints their events. The coordination database is in a temporary
folder, which is removed at the end, so each run begins with all rows. Only warnings and
errors are logged. --set and --log-level override this.`,
		Example: `  observerd run
  observerd run --config /etc/observerd/config.yaml
  observerd run --with-sample | jq .data
  observerd run --source sqlite:shop.db --table stock --timestamp updated_at`,
		Args: takes(0, 0),
	}
	quick := c.quickFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := quick.check(cmd, feed); err != nil {
			return err
		}
		if cmd.Flags().Changed("source") {
			return quick.run(cmd.Context())
		}
		return c.runNode(cmd.Context(), feed)
	}
	cmd.Flags().BoolVar((*bool)(&feed), "with-sample", false, "make and feed the sample warehouse, an SQLite file that is the source warehouse, while the node runs")
	return cmd
}

// runNode runs a node, and others after it when the configuration is reloaded. It
// tells the service manager, if there is one, how that goes.
func (c *cli) runNode(ctx context.Context, feed feeder) (err error) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	manager, problem := systemd.New()
	if problem != nil {
		fmt.Fprintf(c.stderr, "warning: the service manager's watchdog is not fed: %v\n", problem)
	}
	defer func() {
		manager.Ending(exitStatus(err))
		manager.Close()
	}()
	requests := make(chan reloadAsk)
	first, err := c.thisProcess()
	if err != nil {
		return err
	}
	var self atomic.Pointer[nodeProcess]
	self.Store(&first)
	stop, deaf := serveReloads(ctx, &self, requests)
	if deaf == nil {
		defer stop()
	}
	ctx, closed := context.WithCancelCause(ctx)
	s := &supervisor{
		load: c.loadConfig, feed: feed, stdout: pipeWriter{terminal.JSON(c.stdout), closed}, stderr: c.stderr,
		terminal: terminal.Is(c.stdout), manager: manager, reloads: app.NewReloads(), self: &self, hangups: hangups, requests: requests, deaf: deaf, attended: terminal.Is(c.stderr),
	}
	return s.run(ctx)
}

// feeder keeps the sample warehouse moving beside a node, if that is wanted.
type feeder bool

// sampleSource is the source that is the sample warehouse.
const sampleSource = "warehouse"

// start returns the function that ends the feeding and waits for it.
func (f feeder) start(ctx context.Context, cfg *config.Config, log *slog.Logger) (stop func() error, err error) {
	if !f {
		return func() error { return nil }, nil
	}
	path, err := samplePath(cfg)
	if err != nil {
		return nil, err
	}
	warehouse, err := sample.Open(ctx, path, 0)
	if err != nil {
		return nil, err
	}
	log = log.With("component", "sample")
	log.Debug("Feeding the sample warehouse", "path", path)
	ctx, cancel := context.WithCancel(ctx)
	var feeding sync.WaitGroup
	feeding.Go(func() {
		if err := warehouse.Run(ctx, sample.Every); err != nil {
			log.Error("Error feeding the sample warehouse; it does not change any more", "err", err)
		}
	})
	return func() error {
		cancel()
		feeding.Wait()
		return warehouse.Close()
	}, nil
}

// samplePath is the file of the sample warehouse.
func samplePath(cfg *config.Config) (string, error) {
	src, ok := cfg.Sources[sampleSource]
	if !ok {
		return "", usageError{errors.New("--with-sample: the configuration has no source " + sampleSource)}
	}
	src, err := src.Resolve()
	if err != nil {
		return "", err
	}
	if src.URL.Dialect() != config.SQLite {
		return "", usageError{errors.New("--with-sample: the source " + sampleSource + " is not an SQLite file; the sample warehouse is one")}
	}
	return src.URL.Path(), nil
}

// errPipeClosed is why a node stops whose stdout has lost its reader, as in
// 'observerd run | head'.
var errPipeClosed = errors.New("stdout was closed by its reader")

// pipeWriter ends a context with [errPipeClosed] when a write finds no reader any more.
type pipeWriter struct {
	io.Writer
	closed context.CancelCauseFunc
}

func (p pipeWriter) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.closed(errPipeClosed)
	}
	return n, err
}
