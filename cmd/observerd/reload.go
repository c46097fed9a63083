package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
)

// reloadTimeout is longer than a node takes to read its configuration, to stop
// and to begin anew, and shorter than TimeoutStartSec of the unit.
const reloadTimeout = 80 * time.Second

// reloadRequest is what a client writes to ask for a reload.
const reloadRequest = "reload\n"

// reloadAnswer is what the process says of a reload, one JSON object a line: that the
// new node waits, once it begins, and then the outcome.
type reloadAnswer struct {
	// Waiting is set where the outcome is not known yet: the new configuration is at
	// work, and its coordination database has not answered.
	Waiting bool `json:"waiting,omitempty"`
	// ExitCode is that of a start with the new configuration.
	ExitCode int `json:"exit_code"`
	// Changed is how many keys have changed.
	Changed int    `json:"changed,omitempty"`
	Why     string `json:"why,omitempty"`
}

// reloadError is why a reload did not go well, or not well yet.
type reloadError struct {
	code int
	text string
}

// Error is the text.
func (e reloadError) Error() string { return e.text }

func (c *cli) reloadCommand() *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let the node on this host reload its configuration, and say how that went",
		Long: `Ask the process of the node on this host to reload its configuration, and wait for
what comes of it: the new configuration is at work and its coordination database
answers, or it was refused and the former one goes on. 'systemctl reload observerd'
calls this.

It asks over a socket of that process, which is open to its user and to root. It
needs no configuration of its own. A node in a container has another number
outside: call it there. Elsewhere than on Linux send SIGHUP in its place; the log
of the node then says how the reload went.

Exit code 0: the new configuration is at work. When it was refused, the command
says why, and the exit code is that of a start with it: 78 when it is wrong or
does not suit the host, 77 when a right is missing, or another (see 'observerd
help exit-codes'). 69: it is at work, but its coordination database has not answered
within --timeout; the node waits for it. 1: the node has not said within --timeout
how the reload went, or has ended; or no node was asked, and the message says so.`,
		Example: `  systemctl reload observerd
  observerd reload --pid 4711
  docker compose exec node-a observerd reload --pid 1`,
		Args: takes(0, 0),
	}
	timeout := timeoutFlag(cmd, reloadTimeout)
	cmd.Flags().IntVar(&pid, "pid", 0, "the `number` of the node's process")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if pid <= 0 {
			return usageError{errors.New("--pid is missing: the number of the node's process, such as --pid 1 in a container")}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		changed, err := askForReload(ctx, pid)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.stdout, either(changed > 0, "reloaded", "reloaded; no key has changed"))
		return nil
	}
	return cmd
}

// askForReload returns how many keys a reload of the process has changed.
func askForReload(ctx context.Context, pid int) (changed int, err error) {
	conn, err := dialReload(ctx, pid)
	if err != nil {
		return 0, fmt.Errorf("no node was asked: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return followReload(ctx, conn)
}

// followReload asks for a reload over the connection, and waits for its outcome.
func followReload(ctx context.Context, conn net.Conn) (changed int, err error) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	fmt.Fprint(conn, reloadRequest)
	answers, waits := json.NewDecoder(conn), false
	for {
		var answer reloadAnswer
		err := answers.Decode(&answer)
		switch {
		case err != nil:
			return 0, unanswered(ctx, waits)
		case answer.Waiting:
			waits = true
		case answer.ExitCode != exitOK:
			return 0, reloadError{answer.ExitCode, answer.Why}
		default:
			return answer.Changed, nil
		}
	}
}

// unanswered says why the outcome is not known.
func unanswered(ctx context.Context, waits bool) error {
	switch {
	case ctx.Err() == nil:
		return errors.New("the process has ended; its log says why")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case waits:
		return reloadError{exitUnavailable, "the new configuration is at work, but the node waits for its coordination database; its log says why"}
	}
	return errors.New("the node has not said within --timeout how the reload went; its log may")
}
