package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/systemd"
)

// stopGrace is what a stop may take beyond the time that polls have to finish.
const stopGrace = 15 * time.Second

// readTimeout is what a reload may take to read the configuration: a file can be a
// pipe without a writer, or lie on a server that does not answer.
const readTimeout = 30 * time.Second

// supervisor runs one node after the other in this process: each reload of the
// configuration ends one and begins the next.
type supervisor struct {
	load    func() (*config.Config, []config.Problem, error)
	feed    feeder
	stdout  io.Writer
	stderr  io.Writer
	manager *systemd.Notifier
	reloads *app.Reloads
	// hangups are the signals that ask for a reload. One that comes during a
	// reload waits for its end.
	hangups <-chan os.Signal
	// attended says that the log goes to a terminal.
	attended bool

	// Those of the present node.
	cfg         *config.Config
	log         *slog.Logger
	node        *app.App
	stopFeeding func() error
	running     bool // neither of them was stopped
	// former is what to go back to while it is not sure that the present node can
	// work with its configuration; nil otherwise.
	former *provenConfig
}

// provenConfig is a configuration with which a node has worked, or the first one.
type provenConfig struct {
	cfg *config.Config
	at  time.Time // when it was loaded
}

// run returns when ctx ends or no node can go on.
func (s *supervisor) run(ctx context.Context) error {
	cfg, warnings, err := s.load()
	if err != nil {
		warn(s.stderr, warnings)
		return err
	}
	if err := s.begin(ctx, cfg, warnings); err != nil {
		return err
	}
	for !ended(ctx) {
		select {
		case <-ctx.Done():
		case <-s.hangups:
			if s.abandoned() {
				return s.end(ctx)
			}
			err = s.reload(ctx)
		case <-s.proven():
			s.former = nil
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

// abandoned reports whether the terminal that shows the log has gone, so that the
// signal is the kernel's, and does not ask for a reload.
func (s *supervisor) abandoned() bool { return s.attended && !isTerminal(s.stderr) }

// proven is closed when the node works; nil where nothing hangs on it.
func (s *supervisor) proven() <-chan struct{} {
	if s.former == nil {
		return nil
	}
	return s.node.Polling()
}

// begin makes a node and starts it. When it fails, the fields are as they were.
func (s *supervisor) begin(ctx context.Context, cfg *config.Config, warnings []config.Problem) error {
	log := newLogger(s.stderr, cfg.Log, cfg.Log.SlogLevel())
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
	node, err := app.New(ctx, app.Options{Config: cfg, Version: buildVersion(), Logger: log, Stdout: s.stdout, Reloads: s.reloads})
	if err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), stopFeeding())
	}
	s.cfg, s.log, s.node, s.stopFeeding, s.running = cfg, log, node, stopFeeding, true
	node.Start()
	s.manager.Watch(node, log.With("component", "systemd"))
	return nil
}

// stopTimeout is how long the present node may take to stop.
func (s *supervisor) stopTimeout() time.Duration { return s.cfg.Scheduler.ShutdownTimeout + stopGrace }

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
	failure := s.node.Err()
	failure = errors.Join(failure, s.stop(ctx))
	if errors.Is(context.Cause(ctx), errPipeClosed) {
		failure = errors.Join(failure, errPipeClosed)
	}
	return failure
}

// reload replaces the node by one with the present configuration, unless that is
// wrong. An error means that no node runs any more.
func (s *supervisor) reload(ctx context.Context) error {
	s.reloads.Begin()
	s.manager.Reloading()
	next := s.readInTime(ctx)
	if ended(ctx) {
		return nil // This was the last node.
	}
	if why := next.why; why != nil {
		s.refused(why)
		return nil
	}
	present, proven, changed := s.cfg, s.lastProven(), config.Changed(s.cfg, next.cfg)
	s.log.Info("Reloading the configuration: the node stops, and another one takes its place", "changed", changed)
	s.stopFormer(ctx)
	if ended(ctx) {
		return nil
	}
	if err := s.begin(ctx, next.cfg, next.warnings); err != nil {
		return s.revert(ctx, present, err)
	}
	s.former = proven
	s.log.Info("Configuration reloaded")
	s.reloads.Done(len(changed))
	s.manager.Reloaded("")
	return nil
}

// lastProven is the last configuration with which a node has worked; before any
// has, that of the present node.
func (s *supervisor) lastProven() *provenConfig {
	select {
	case <-s.node.Polling():
	default:
		if s.former != nil {
			return s.former
		}
	}
	return &provenConfig{s.cfg, s.reloads.Loaded()}
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
	if err == nil {
		err = s.feed.check(cfg)
	}
	return reading{cfg, warnings, err}
}

// stopFormer stops the present node for the next one. What does not stop in time is
// fenced, and left behind: until it ends, the next node counts as hanging.
func (s *supervisor) stopFormer(ctx context.Context) {
	if err := s.stop(ctx); err != nil {
		s.log.Error("The former node did not stop as it should; what is left of it can commit nothing, but may hold on to the files of sinks", "err", err)
	}
}

// undo goes back from a node that was begun by a reload and cannot go on.
func (s *supervisor) undo(ctx context.Context, why error) error {
	s.manager.Reloading()
	former := s.former
	s.former = nil
	s.reloads.Undo(former.at) // Before the former node shows how the reload went.
	s.stopFormer(ctx)
	return s.revert(ctx, former.cfg, why)
}

// revert begins a node with the former configuration, because of why.
func (s *supervisor) revert(ctx context.Context, former *config.Config, why error) error {
	err := s.begin(ctx, former, nil)
	if err != nil && !ended(ctx) { // When it need not begin, it cannot either.
		return errors.Join(why, fmt.Errorf("go back to the former configuration: %w", err))
	}
	if err == nil {
		s.refused(why)
	}
	return nil
}

// ended reports whether the process is to end.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// refused tells of a reload that has changed nothing.
func (s *supervisor) refused(why error) {
	var mistakes *config.Error
	if errors.As(why, &mistakes) {
		for _, p := range mistakes.Problems {
			s.log.Error("Reload refused: the configuration is wrong, the former one goes on", "problem", p.String())
		}
	} else {
		s.log.Error("Reload refused: the former configuration goes on", "err", why)
	}
	s.reloads.Refused(exitCode(why))
	s.manager.Reloaded(summary(why))
}
