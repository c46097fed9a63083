package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/systemd"
)

// stopGrace is what a stop may take beyond the time that polls have to finish.
const stopGrace = 15 * time.Second

// readTimeout is what a reload may take to read the configuration: a file can be a
// pipe without a writer, or lie on a server that does not answer.
const readTimeout = 30 * time.Second

// noteTimeout limits how long a reload waits for the audit table.
const noteTimeout = 5 * time.Second

// supervisor runs one node after the other in this process: each reload of the
// configuration ends one and begins the next.
type supervisor struct {
	load   func() (*config.Config, []config.Problem, error)
	feed   feeder
	stdout io.Writer
	stderr io.Writer
	// terminal says that stdout is one.
	terminal bool
	manager  *systemd.Notifier
	reloads  *app.Reloads
	// self is what the process says of itself.
	self *atomic.Pointer[nodeProcess]
	// hangups are the signals that ask for a reload. One that comes during a
	// reload waits for its end.
	hangups <-chan os.Signal
	// requests ask for a reload, too, and have room for what is said of it.
	requests <-chan reloadAsk
	// deaf is why there are no requests.
	deaf error
	// attended says that the log goes to a terminal.
	attended bool

	// Those of the present node.
	present     *config.Config
	log         *slog.Logger
	node        *app.App
	stopFeeding func() error
	running     bool // neither of them was stopped
	// former is what to go back to while it is not sure that the present node can
	// work with its configuration; nil otherwise. A node has worked with it, or it is
	// the first one.
	former *config.Config
	// waiting are to be told whether the present node can work with its configuration.
	waiting []reloadAsk
}

// run returns when ctx ends or no node can go on.
func (s *supervisor) run(ctx context.Context) error {
	cfg, warnings, err := s.load()
	if err != nil {
		warn(s.stderr, warnings)
		return err
	}
	s.reloads.Set(exitOK, cfg.Loaded())
	if err := s.begin(ctx, cfg, warnings); err != nil {
		return err
	}
	if s.deaf != nil {
		s.log.Warn("'observerd reload' does not reach this process; SIGHUP does", "err", s.deaf)
	}
	for !ended(ctx) {
		select {
		case <-ctx.Done():
		case <-s.hangups:
			if s.attended && !terminal.Is(s.stderr) { // The terminal has gone: the signal is the kernel's.
				return s.end(ctx)
			}
			err = s.reload(ctx, reloadAsk{actor: "SIGHUP", answers: make(chan reloadAnswer, 2)})
		case asks := <-s.requests:
			err = s.reload(ctx, asks)
		case <-s.proven():
			s.works(ctx)
		case <-s.node.Done():
			if s.former == nil {
				return s.end(ctx)
			}
			err = s.undo(ctx, s.node.Err())
		}
		if err != nil {
			return err
		}
	}
	return s.end(ctx)
}

// proven is closed when the node works; nil where nothing hangs on it.
func (s *supervisor) proven() <-chan struct{} {
	if s.former == nil {
		return nil
	}
	return s.node.Polling()
}

// begin makes a node and starts it. When it fails, the fields are as they were.
func (s *supervisor) begin(ctx context.Context, cfg *config.Config, warnings []config.Problem) error {
	log := newLogger(s.stderr, cfg.Log, cfg.Log.Level)
	for _, p := range warnings {
		log.Warn("Configuration can be improved", "warning", p.String())
	}
	if err := admin.CheckRights(cfg); err != nil {
		return err
	}
	stopFeeding, err := s.feed.start(ctx, cfg, log)
	if err != nil {
		return err
	}
	node, err := app.New(ctx, app.Options{Config: cfg, Version: buildVersion(), Logger: log, Stdout: s.stdout, Terminal: s.terminal, Reloads: s.reloads})
	if err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), stopFeeding())
	}
	s.present, s.log, s.node, s.stopFeeding, s.running = cfg, log, node, stopFeeding, true
	logStart(log, cfg, node.Addr())
	node.Start()
	s.describeNode(cfg.HTTP, node.Addr())
	s.manager.Watch(node, log.With("component", "systemd"))
	return nil
}

// describeNode lets the process say where its present node is asked: at the address that it
// listens on, or the socket.
func (s *supervisor) describeNode(h config.HTTP, address string) {
	host, _, err := net.SplitHostPort(h.Listen)
	if _, port, unknown := net.SplitHostPort(address); err == nil && unknown == nil {
		h.Listen = net.JoinHostPort(host, port) // Port 0 has become another one.
	}
	self := *s.self.Load()
	self.HTTP = nil
	if path, err := filepath.Abs(h.Socket); err == nil && h.Socket != "" {
		h.Socket = path // The one who asks may be in another folder.
	}
	if where, err := reach(h); err == nil {
		self.HTTP = &where
	}
	s.self.Store(&self)
}

// logStart writes the one line that says what is started, and where it shows its state.
// Observers and types that are switched off do not count.
func logStart(log *slog.Logger, cfg *config.Config, address string) {
	types, observers := cfg.Polled()
	log = log.With("node", cfg.Node.Name, "version", buildVersion(), "config", cfg.Files(), "observers", observers, "types", len(types), "sinks", len(cfg.Sinks))
	if !cfg.Scheduler.Enabled {
		log = log.With("enabled", false)
	}
	if host, port, err := net.SplitHostPort(address); err == nil {
		if ownAddress(host) != host {
			host = "localhost"
		}
		log = log.With("http", cfg.HTTP.Scheme()+"://"+net.JoinHostPort(host, port))
	}
	if cfg.HTTP.Socket != "" {
		log = log.With("socket", cfg.HTTP.Socket)
	}
	log.Info("Starting node")
}

// stopTimeout is how long the present node may take to stop.
func (s *supervisor) stopTimeout() time.Duration {
	return s.present.Scheduler.ShutdownTimeout + stopGrace
}

// stop ends the present node, also when ctx has ended. A second call does
// nothing.
func (s *supervisor) stop(ctx context.Context) error {
	if !s.running {
		return nil
	}
	s.running = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.stopTimeout())
	defer cancel()
	if err := s.node.Stop(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop: %w", err), s.stopFeeding())
	}
	return s.stopFeeding()
}

// end ends the last node, and says why when that was not asked for.
func (s *supervisor) end(ctx context.Context) error {
	s.manager.Stopping(s.stopTimeout())
	failure := errors.Join(s.node.Err(), s.stop(ctx))
	if errors.Is(context.Cause(ctx), errPipeClosed) {
		failure = errors.Join(failure, errPipeClosed)
	}
	return failure
}

// reload replaces the node by one with the present configuration, unless that is
// wrong, and lets the one who asks know. An error means that no node runs any more.
func (s *supervisor) reload(ctx context.Context, asks reloadAsk) error {
	s.manager.Reloading()
	next := s.readInTime(ctx)
	if ended(ctx) {
		return nil // This was the last node.
	}
	if why := next.why; why != nil {
		s.refused(why, asks)
		return nil
	}
	select {
	case <-s.proven():
		s.works(ctx)
	default:
	}
	present, changed := s.present, config.Changed(s.present, next.cfg)
	s.log.Info("Reloading the configuration: the node stops, and another one takes its place", "changed", changed)
	s.stopFormer(ctx)
	if ended(ctx) {
		return nil
	}
	if err := s.begin(ctx, next.cfg, next.warnings); err != nil {
		return s.revert(ctx, present, err, asks)
	}
	if s.former == nil {
		s.former = present
	}
	asks.changed = len(changed)
	s.waiting = append(s.waiting, asks)
	s.log.Info("Configuration reloaded")
	s.reloads.Set(exitOK, s.present.Loaded())
	s.manager.Reloaded("")
	asks.answers <- reloadAnswer{Waiting: true}
	return nil
}

// works notes that the present node works with its configuration.
func (s *supervisor) works(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	for _, asks := range s.waiting {
		if err := s.node.NoteReload(ctx, asks.actor, asks.changed); err != nil {
			s.log.Warn("The reload is not in the audit table", "actor", asks.actor, "err", err)
		}
		asks.answers <- reloadAnswer{Changed: asks.changed}
	}
	s.former, s.waiting = nil, nil
}

// reading is a configuration that was loaded anew, with what is to say about it, or
// why it cannot be used.
type reading struct {
	cfg      *config.Config
	warnings []config.Problem
	why      error
}

// readInTime is read, but no longer than ctx or readTimeout. What reads on is left
// behind: nothing ends a call that hangs in the kernel.
func (s *supervisor) readInTime(ctx context.Context) reading {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	done := make(chan reading, 1)
	go func() { done <- s.read() }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		return reading{why: fmt.Errorf("the configuration, or a file that it names, could not be read within %s; "+
			"name a file on a disk that answers, and no pipe without a writer", readTimeout)}
	}
}

// read loads the configuration anew and checks all that can be checked while
// the present node works.
func (s *supervisor) read() reading {
	cfg, warnings, err := s.load()
	if err == nil {
		err = admin.CheckRights(cfg)
	}
	if err == nil && bool(s.feed) {
		_, err = samplePath(cfg)
	}
	return reading{cfg, warnings, err}
}

// stopFormer stops the present node for the next one. What does not stop in time is
// fenced, and left behind: until it ends, the next node counts as hanging.
func (s *supervisor) stopFormer(ctx context.Context) {
	switch err := s.stop(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		s.log.Error("The former node did not stop in time; the rest of it cannot commit, but may keep the files of sinks open", "err", err)
	case err != nil:
		s.log.Warn("The former node has stopped, and did not give everything back; what is left ends by itself", "err", err)
	}
}

// undo goes back from a node that was begun by a reload and cannot go on.
func (s *supervisor) undo(ctx context.Context, why error) error {
	s.manager.Reloading()
	former, waiting := s.former, s.waiting
	s.former, s.waiting = nil, nil
	s.stopFormer(ctx)
	return s.revert(ctx, former, why, waiting...)
}

// revert begins a node with the former configuration, because of why.
func (s *supervisor) revert(ctx context.Context, former *config.Config, why error, asked ...reloadAsk) error {
	err := s.begin(ctx, former, nil)
	if err != nil && !ended(ctx) { // When it need not begin, it cannot either.
		return errors.Join(why, fmt.Errorf("go back to the former configuration: %w", err))
	}
	if err == nil {
		s.refused(why, asked...)
	}
	return nil
}

// ended reports whether the process is to end.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// refused tells of a reload that has changed nothing.
func (s *supervisor) refused(why error, asked ...reloadAsk) {
	if mistakes, ok := errors.AsType[*config.Error](why); ok {
		for _, p := range mistakes.Problems {
			s.log.Error("Reload refused: the configuration is wrong, the former one stays in use", "problem", p.String())
		}
	} else {
		s.log.Error("Reload refused: the former configuration stays in use", "err", why)
	}
	s.reloads.Set(exitCode(why), s.present.Loaded())
	s.manager.Reloaded(summary(why))
	for _, asks := range asked {
		asks.answers <- reloadAnswer{ExitCode: exitCode(why), Why: "the node has refused the new configuration, and keeps the former one: " + summary(why)}
	}
}
