package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/config"
)

func (c *cli) healthcheckCommand() *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the node on this host whether it is healthy",
		Long: `Ask the node of this configuration on this host whether it is healthy: whether
every loop of its process turns. With --ready, ask whether it can do its work
now, too: whether its coordination database answers.

It uses http.socket, or without one http.listen. A node whose http.listen requires
TLS or a password needs an http.socket for this.

On Linux the process of the node reports to its own user where it listens. So a mistake
in the configuration, or a change that was not reloaded yet, does not matter. It is
found by --config, --set and the variables OBSERVERD_…, which must be those of the node;
process 1 of a container is found by --config alone. If no such process is found, the
address in the configuration is used.

The answer is one line, or with -o json an object. If the node is not healthy, stdout is
empty and stderr has the reason. Exit code 0: healthy, 1: not, or no answer; 77: this user
may not use the socket, 78: the configuration leaves no address that can be asked.`,
		Example: `  observerd healthcheck
  observerd healthcheck --ready --timeout 3s`,
		Args: takes(0, 0),
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether the node can do its work now")
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 5*time.Second)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		where, err := c.whereToAsk(ctx, *timeout/2)
		if err != nil {
			return err
		}
		check := either(ready, readyToWork, healthy)
		return c.line(*output, map[string]string{"status": check.good}, where.ask(ctx, check), "%s", check.good)
	}
	return cmd
}

// check is a page, what it answers when all is well, and what that means.
type check struct{ path, answer, good string }

var (
	healthy     = check{"/healthz", "ok", "healthy"}
	readyToWork = check{"/readyz", "ready", "ready"}
)

// place is where a node can be asked.
type place struct {
	Network string `json:"network"`
	Address string `json:"address"`
}

// whereToAsk returns where the process of this node says that it listens, or where the
// configuration says so if no such process has answered within the limit.
func (c *cli) whereToAsk(ctx context.Context, limit time.Duration) (place, error) {
	where, unknown := c.whereItListens(ctx, limit)
	if unknown == nil {
		return where, nil
	}
	// The start of the node has printed the warnings.
	cfg, _, err := c.loadConfig()
	switch mistakes, are := errors.AsType[*config.Error](err); {
	case are:
		return place{}, &config.Error{Problems: append(mistakes.Problems, config.Problem{
			Text:   "healthcheck: no running node was found to ask instead: " + unknown.Error(),
			Unread: errors.Is(err, config.ErrUnread), Denied: errors.Is(err, fs.ErrPermission),
		})}
	case err != nil:
		return place{}, err
	}
	return reach(cfg.HTTP)
}

// whereItListens asks the processes of this user on this host: another user could claim to be
// the node. Process 1 is the node of a container, whatever flags it was started with.
func (c *cli) whereItListens(ctx context.Context, limit time.Duration) (place, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	wanted, err := c.thisProcess()
	if err != nil {
		return place{}, err
	}
	running, err := runningNodes(ctx)
	if err != nil {
		return place{}, err
	}
	running = slices.DeleteFunc(running, func(p nodeProcess) bool {
		return p.HTTP == nil || p.UID != os.Geteuid() || !p.sameConfig(wanted) || p.Settings != wanted.Settings && p.PID != 1
	})
	if len(running) != 1 {
		return place{}, fmt.Errorf("of those of this user on this host, %d have this --config, --set and OBSERVERD_…", len(running))
	}
	return *running[0].HTTP, nil
}

// reach returns where the node of the configuration can be asked from its own
// host, without TLS and without a password. Its error is a [*config.Error].
func reach(h config.HTTP) (place, error) {
	refused := func(key, text string) error {
		return &config.Error{Problems: []config.Problem{{Key: key, Text: "healthcheck: " + text}}}
	}
	host, port, _ := net.SplitHostPort(h.Listen)
	switch {
	case h.Socket != "":
		return place{Network: "unix", Address: h.Socket}, nil
	case h.Listen == "":
		return place{}, refused("http", "there is nothing to ask, because http.listen is empty and http.socket is not set; set one of them")
	case port == "0":
		return place{}, refused("http.listen", "http.listen has port 0, and only the node knows the port that it uses; set a port, or http.socket")
	case !h.Plain():
		return place{}, refused("http.web-config", "http.listen asks for TLS or a password (http.web-config), and this command has neither; "+
			"set http.socket as well, such as /run/observerd/http.sock, which healthcheck then uses")
	}
	return place{Network: "tcp", Address: net.JoinHostPort(ownAddress(host), port)}, nil
}

// ownAddress is where this host reaches what listens on every interface.
func ownAddress(host string) string {
	ip := net.ParseIP(host)
	switch {
	case host == "", ip != nil && ip.Equal(net.IPv4zero):
		return "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		return "::1"
	}
	return host
}

// ask returns nil when the page gives its good answer. Otherwise the exit code is 1,
// whatever has led to it: that is what a service manager asks.
func (p place) ask(ctx context.Context, c check) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, p.Network, p.Address)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true} // And no proxy: this is our own host.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// Every node goes by this name, wherever it is reached.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+c.path, http.NoBody)
	if err != nil {
		return errors.New(p.String() + " cannot be asked: " + err.Error())
	}
	response, err := client.Do(request)
	if err != nil {
		return p.explain(ctx, err)
	}
	defer response.Body.Close() // It was only read: there is nothing to lose.
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	answer := oneLine(string(body))
	switch {
	case err != nil:
		return p.explain(ctx, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s (%s, %d)", answer, p, response.StatusCode)
	case answer != c.answer:
		return errors.New(p.String() + " answers, but not as observerd: does another program listen there?")
	}
	return nil
}

// explain words why there is no answer.
func (p place) explain(ctx context.Context, err error) error {
	switch {
	case p.Network == "unix" && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("http.socket: only the user of the node, and root, may use %s; ask as one of them: %w", p.Address, fs.ErrPermission)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return errors.New("no node listens on " + p.String())
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		// The connection has the same deadline, and may be the first to notice.
		return errors.New("no answer from " + p.String() + " within --timeout")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New("no answer from " + p.String() + ": " + strings.TrimSpace(err.Error()))
}

func (p place) String() string { return p.Address }
