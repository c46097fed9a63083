package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/config"
)

const (
	// reloadTimeout is longer than a node takes to read its configuration, to stop
	// and to begin anew, and shorter than TimeoutStartSec of the unit.
	reloadTimeout = 80 * time.Second
	// identifyTimeout is longer than the address is closed between two nodes.
	identifyTimeout = 10 * time.Second
	// reloadPace is the time between two questions.
	reloadPace = 200 * time.Millisecond
	// answerTimeout is what the answers to one may take.
	answerTimeout = 10 * time.Second
	// startSlack is by how many seconds two readings of the beginning of one process
	// may differ: the clock may have been set between them.
	startSlack = 2.0
	// longestMetrics bounds what is read of the metrics, in bytes.
	longestMetrics = 8 << 20
)

// The metrics by which a reload is followed.
const (
	reloadsBegun  = "observerd_config_reloads_total"
	reloadNumber  = "observerd_config_last_reload_number"
	reloadCode    = "observerd_config_last_reload_exit_code"
	reloadChanged = "observerd_config_last_reload_changed_keys"
	processID     = "observerd_process_id"
	// processStart is when the process began, in seconds since 1970, where the
	// system tells.
	processStart = "process_start_time_seconds"
)

// reloadMetrics are those that every node has.
var reloadMetrics = []string{reloadsBegun, reloadNumber, reloadCode, reloadChanged, processID}

// reloadError is what the node has said of a reload that did not go well, or not
// well yet.
type reloadError struct {
	code int
	text string
}

// Error is the text.
func (e reloadError) Error() string { return e.text }

// reloader is one run of reload.
type reloader struct {
	*cli
	pid     int
	timeout *time.Duration
}

func (c *cli) reloadCommand() *cobra.Command {
	r := &reloader{cli: c}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let the node on this host reload its configuration, and say how that went",
		Long: `Send SIGHUP to the process of the node on this host, and wait for what comes of
it: the new configuration is at work and its coordination database answers, or it
was refused and the former one goes on. 'systemctl reload observerd' calls this.

It asks over http.socket or http.listen, as 'observerd healthcheck' does, and
sends the signal only if the process that --pid names is the node that answers
there. A socket that --set or OBSERVERD_HTTP_SOCKET names is used without a look
into the file. When the new configuration moves these, name the present one, such
as --set http.listen=ADDRESS: after the signal it looks at both. A node in a
container has another number outside: call it there.

Exit code 0: the new configuration is at work. When it was refused, the log of the
node says why, and the exit code is that of a start with it: 78 when it is wrong or
does not suit the host, 77 when a right is missing, or another (see 'observerd
help exit-codes'). 69: it is at work, but its coordination database has not answered
within --timeout; the node waits for it. 1: the node has not said within --timeout
how the reload went, or has ended; or it was not signalled, and the message says so.`,
		Example: `  systemctl reload observerd
  observerd reload --pid 4711
  docker compose exec node-a observerd -c /etc/observerd/config.yaml reload --pid 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	r.timeout = timeoutFlag(cmd, reloadTimeout)
	cmd.Flags().IntVar(&r.pid, "pid", 0, "the `number` of the node's process")
	return cmd
}

func (r *reloader) run(ctx context.Context) error {
	if r.pid <= 0 { // 0 and less are groups of processes.
		return usageError{errors.New("--pid is missing: the number of the node's process, such as --pid 1 in a container")}
	}
	places, err := r.places()
	if err != nil {
		return err
	}
	process, err := os.FindProcess(r.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", r.pid, err)
	}
	defer func() { _ = process.Release() }()
	ctx, cancel := context.WithTimeout(ctx, *r.timeout)
	defer cancel()
	w := &reloadWatch{places: places, process: process}
	if err := w.identify(ctx); err != nil {
		return fmt.Errorf("process %d was not signalled: %w (when the node is elsewhere as yet, name that place with --set http.socket=PATH or "+
			"--set http.listen=ADDRESS)", r.pid, err)
	}
	if err := process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("signal process %d: %w", r.pid, err)
	}
	if err := w.wait(ctx); err != nil {
		return err
	}
	if w.changed == 0 {
		fmt.Fprintln(r.stdout, "reloaded; no key has changed")
		return nil
	}
	fmt.Fprintln(r.stdout, "reloaded")
	return nil
}

// places are where the node may be asked, the first before the others. The first
// has to be known whatever is wrong with the rest of the configuration, which the
// node is to say, and without what systemd gives to the node alone, as credentials.
// With a socket that the environment or a flag names, nothing hangs on the file.
// The others are where a node may come from, or go to, that moves.
func (r *reloader) places() ([]place, error) {
	overrides, err := r.overrides()
	if err != nil {
		return nil, err
	}
	named, namedErr := config.LoadHTTP(config.Options{Environ: r.environ, Overrides: overrides})
	first := named
	// The file may correct http.listen.
	if namedErr != nil || named.Socket == "" {
		if r.configPath == "" {
			return nil, errNoConfig
		}
		first, err = config.LoadHTTP(config.Options{Path: r.configPath, Environ: r.environ, Overrides: overrides})
		if err != nil {
			return nil, err
		}
	}
	where, err := reach("reload", first)
	if err != nil {
		return nil, err
	}
	all := []place{where}
	add := func(h config.HTTP, err error) {
		if err != nil {
			return
		}
		if other, err := reach("reload", h); err == nil && !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	add(named, namedErr)
	if r.configPath != "" {
		add(config.LoadHTTP(config.Options{Path: r.configPath, Environ: r.environ}))
	}
	return all, nil
}

// reloadWatch waits for the end of a reload.
type reloadWatch struct {
	// places are where the node may answer; where is the one at which it did.
	places  []place
	where   place
	process *os.Process
	// begun are the reloads that had begun before the signal. One that began later
	// has read the configuration that the caller means.
	begun float64
	// changed is how many keys the reload has changed, once it has taken effect.
	changed float64
}

// identify sees that the process and the node that answers are one, before the process
// is disturbed: the signal ends most other programs, and another node would tell
// of its own reloads. During a reload nobody may answer for a moment.
func (w *reloadWatch) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	return retry(ctx, unhealthyError{"no answer from " + w.places[0].String()}, func() (known bool, err error) {
		if err := w.process.Signal(syscall.Signal(0)); err != nil {
			return true, err
		}
		said, known, err := w.metrics(ctx)
		w.begun = said[reloadsBegun]
		return known || said != nil, err
	})
}

// wait returns nil when the new configuration is at work.
func (w *reloadWatch) wait(ctx context.Context) error {
	unknown := unhealthyError{"the node has not said within --timeout how the reload went; its log may"}
	return retry(ctx, unknown, func() (known bool, err error) { return w.outcome(ctx) })
}

// retry looks until the outcome is known. When the time of ctx is over before, it
// returns the last error, or the first where there was none.
func retry(ctx context.Context, last error, look func() (known bool, err error)) error {
	tick := time.NewTicker(reloadPace)
	defer tick.Stop()
	for {
		known, err := look()
		if known {
			return err
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return last
			}
			return ctx.Err()
		}
	}
}

// outcome reports whether the outcome is known by now. While it is not, nobody may
// answer: between two nodes the address is closed. What the command itself thinks of
// the configuration does not count: systemd gives credentials to the daemon alone.
func (w *reloadWatch) outcome(ctx context.Context) (known bool, err error) {
	if errors.Is(w.process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true, unhealthyError{"the process has ended; its log says why"}
	}
	said, known, err := w.metrics(ctx)
	switch exit := said[reloadCode]; {
	case known:
		return true, err
	case said == nil, said[reloadNumber] <= w.begun:
		return false, nil
	case exit != exitOK:
		return true, reloadError{int(exit), "the node has refused the new configuration, and goes on with the former one; its log says why"}
	}
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = w.where.ask(asking, readyToWork)
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err != nil:
		return false, reloadError{exitUnavailable, "the new configuration is at work, but the node waits: " + err.Error()}
	}
	w.changed = said[reloadChanged]
	return w.inEffect(ctx, said[reloadNumber]), nil
}

// inEffect reports whether the reload of that number, or a later one, is in effect:
// what was ready may be the former node, which has come back.
func (w *reloadWatch) inEffect(ctx context.Context, number float64) bool {
	said, _, err := w.metrics(ctx)
	return err == nil && said[reloadNumber] >= number && said[reloadCode] == exitOK
}

// metrics returns the metrics of the node, and remembers where it has answered.
// Without, they may come later, unless it is known that they will not, which the
// first place decides.
func (w *reloadWatch) metrics(ctx context.Context) (said map[string]float64, known bool, err error) {
	for i, where := range w.places {
		values, final, failure := w.metricsAt(ctx, where)
		if failure == nil {
			w.where = where
			return values, false, nil
		}
		if i == 0 {
			known, err = final, failure
		}
		if known {
			break
		}
	}
	return nil, known, err
}

func (w *reloadWatch) metricsAt(ctx context.Context, where place) (said map[string]float64, known bool, err error) {
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var silent unhealthyError
	code, text, err := where.get(asking, "/metrics", longestMetrics)
	switch {
	case err != nil:
		return nil, !errors.As(err, &silent) && ctx.Err() == nil, err
	case code != http.StatusOK:
		return nil, false, unhealthyError{fmt.Sprintf("%s answers /metrics with %d; does another program listen there?", where, code)}
	}
	said = valuesOf(text, append(reloadMetrics, processStart)...)
	for _, name := range reloadMetrics {
		if _, has := said[name]; !has {
			return nil, true, unhealthyError{where.String() + " does not say how reloads go: is the node of an older version, or does another program listen there?"}
		}
	}
	if err := w.checkProcess(asking, where, said); err != nil {
		return nil, true, err
	}
	return said, false, nil
}

// checkProcess returns why the process is not the one that answers at that place. What
// that says of itself is its number where it runs, which can be another's number here: a
// socket knows better, and so does the time at which the process began.
func (w *reloadWatch) checkProcess(ctx context.Context, where place, said map[string]float64) error {
	pid, sure := where.listener(ctx)
	if !sure {
		pid = int(said[processID])
	}
	elsewhere := unhealthyError{"the node that answers on " + where.String() + " cannot be seen from here: does it run in a container? Call the command in there"}
	switch {
	case pid == 0:
		return elsewhere
	case pid != w.process.Pid:
		return unhealthyError{fmt.Sprintf("the node that answers on %s is process %d; write --pid %[2]d, or --set http.socket=PATH for that of the node that is meant", where, pid)}
	case sure:
		return nil
	}
	began, known := processBegan(pid)
	if says, tells := said[processStart]; known && tells && math.Abs(says-began) > startSlack {
		return elsewhere
	}
	return nil
}

// valuesOf are the values of the metrics of these names that have no labels; a name
// that is missing has none.
func valuesOf(metrics string, names ...string) map[string]float64 {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		return nil // It is no node.
	}
	values := make(map[string]float64)
	for _, name := range names {
		for _, metric := range families[name].GetMetric() {
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() // It is one of them.
		}
	}
	return values
}
