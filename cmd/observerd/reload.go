package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext"
)

// reloadTimeout is longer than a node takes to read its configuration, to stop
// and to begin anew, and shorter than TimeoutStartSec of the unit.
const reloadTimeout = 80 * time.Second

// What a client writes to ask for a reload, and to know which node it is.
const (
	reloadRequest   = "reload\n"
	describeRequest = "describe\n"
)

// nodeProcess is a process of this program that takes requests for a reload.
type nodeProcess struct {
	PID int `json:"pid"`
	// UID is the user of the process, as the kernel says.
	UID int `json:"-"`
	// Config are the files and folders that it was started with, as absolute paths.
	Config []string `json:"config"`
	// Settings is a digest of its variables OBSERVERD_… and its --set, by which nodes with
	// the same files differ.
	Settings string `json:"settings,omitempty"`
	// HTTP is where its present node can be asked; nil before the first node has started, and
	// where it cannot be asked without TLS or a password.
	HTTP *place `json:"http,omitempty"`
}

func (p nodeProcess) String() string {
	return fmt.Sprintf("process %d with %s", p.PID, cmp.Or(strings.Join(p.Config, " and "), "what it does not say: it hangs"))
}

// thisProcess is the node that this process is, or would be with its flags and variables.
func (c *cli) thisProcess() (nodeProcess, error) {
	p := nodeProcess{PID: os.Getpid(), Config: make([]string, len(c.configPaths))}
	for i, path := range c.configPaths {
		var err error
		if p.Config[i], err = filepath.Abs(path); err != nil {
			return p, err
		}
	}
	settings := slices.DeleteFunc(slices.Sorted(slices.Values(c.environ)), func(pair string) bool { return !strings.HasPrefix(pair, config.EnvPrefix) })
	settings = append(settings, c.settings...)
	p.Settings = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(settings, "\x00"))))
	return p, nil
}

// sameConfig reports whether two processes have the same configuration, under whatever
// names.
func (p nodeProcess) sameConfig(other nodeProcess) bool {
	return slices.EqualFunc(p.Config, other.Config, func(a, b string) bool {
		if a == b {
			return true
		}
		one, err := os.Stat(a)
		two, err2 := os.Stat(b)
		return err == nil && err2 == nil && os.SameFile(one, two)
	})
}

// theNode returns the number of the process to reload: the only one of those that run
// here, or the only one with a configuration, if one is given.
func theNode(running []nodeProcess, wanted nodeProcess, given bool) (pid int, err error) {
	if given {
		all := running
		running = slices.DeleteFunc(slices.Clone(all), func(p nodeProcess) bool { return !p.sameConfig(wanted) })
		if len(running) == 0 && len(all) > 0 {
			return 0, fmt.Errorf("no node was asked: none on this host runs with %s; there is %s: set its --config or --pid", strings.Join(wanted.Config, " and "), listed(all))
		}
	}
	switch len(running) {
	case 0:
		return 0, errors.New("no node was asked: none of this user runs here; as root those of all users are found, and a node in a container from within")
	case 1:
		return running[0].PID, nil
	}
	return 0, usageError{fmt.Errorf("there are several nodes on this host: %s; use the --pid of one", listed(running))}
}

func listed(processes []nodeProcess) string {
	return strings.Join(fn.Each(processes, nodeProcess.String), ", ")
}

// reloadAsk is a request for a reload.
type reloadAsk struct {
	// actor is who asks, for the audit table.
	actor string
	// answers has room for all of them.
	answers chan<- reloadAnswer
	// changed is how many keys the reload has changed.
	changed int
}

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

func (c *cli) reloadCommand() *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Reload the configuration of the node on this host",
		Long: `Ask the process of the node on this host to reload its configuration, and wait for
the result: the new configuration is in use and its coordination database
answers, or it was refused and the former one stays in use. 'systemctl reload observerd'
calls this.

It asks over a socket of that process, which is open to its user and to root. It
finds the node by that socket, and sends no signal: the one with this --config, or the
only one on this host if --config is not given and there is no config.yaml here. If
there are several, it lists them, and requires --pid. It reads no configuration. For a
node in a container, run it in that container. On other systems than Linux send SIGHUP
instead; the log of the node then has the result.

Exit code 0: the new configuration is in use. If it was refused, the command prints
the reason, and the exit code is that of a start with it: 78 if it is wrong or
does not suit the host, 77 if a right is missing, or another (see 'observerd
help exit-codes'). 69: it is in use, but its coordination database has not answered
within --timeout; the node waits for it. 1: the node has not reported the result
within --timeout, or has ended; or no node was asked, which the message says.`,
		Example: `  systemctl reload observerd
  observerd reload
  observerd reload --config /etc/observerd/config.yaml
  observerd reload --pid 4711
  docker compose exec node-a observerd reload`,
		Args: takes(0, 0),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, reloadTimeout)
	cmd.Flags().IntVar(&pid, "pid", 0, "the `number` of the node's process; it is found by default")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		switch {
		case pid < 0, pid == 0 && cmd.Flags().Changed("pid"):
			return usageError{errors.New("--pid is not a number of a process; leave it out to have the node found")}
		case pid == 0:
			var err error
			if pid, err = c.findNode(ctx, cmd.Flags().Changed("config")); err != nil {
				return err
			}
		}
		changed, err := askForReload(ctx, pid)
		return c.line(*output, jsontext.Object{{Name: "changed_keys", Value: changed}}, err, "%s", either(changed > 0, "reloaded", "reloaded; no key has changed"))
	}
	return cmd
}

// findNode returns the number of the process of the node to reload.
func (c *cli) findNode(ctx context.Context, given bool) (pid int, err error) {
	wanted, err := c.thisProcess()
	if err != nil {
		return 0, err
	}
	if !given {
		_, err := os.Stat(c.configPaths[0])
		given = err == nil
	}
	running, err := runningNodes(ctx)
	if err != nil {
		return 0, fmt.Errorf("no node was asked: %w; set its --pid", err)
	}
	return theNode(running, wanted, given)
}

// askForReload returns how many keys a reload of the process has changed.
func askForReload(ctx context.Context, pid int) (changed int, err error) {
	conn, _, err := dialReload(ctx, pid)
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
			return 0, codeError{answer.ExitCode, errors.New(answer.Why)}
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
		return codeError{exitUnavailable, errors.New("the new configuration is in use, but the node waits for its coordination database; its log says why")}
	}
	return errors.New("the node has not reported the result of the reload within --timeout; see its log")
}
