package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/kit/workload"
	"github.com/observerd/observerd/test/suite/torture/audit"
	"github.com/observerd/observerd/test/suite/torture/history"
	"github.com/observerd/observerd/test/suite/torture/pglog"
)

// collect reads what happened from everybody who saw it, and saves it.
func (c *cluster) collect(ctx context.Context, drained time.Duration, unhealed error) (run history.Run, err error) {
	if run.Meta, err = c.meta(ctx, drained, unhealed); err != nil {
		return run, err
	}
	if err := audit.Collect(ctx, c.url(), c.writer, &run); err != nil {
		return run, err
	}
	if len(c.programs) > 0 {
		if err := audit.CollectGuarded(ctx, c.url(), &run); err != nil {
			return run, err
		}
	}
	if run.Writes, err = c.writes(ctx); err != nil {
		return run, err
	}
	if run.Polls, err = c.polls(ctx); err != nil {
		return run, err
	}
	if run.Delivered, err = readSink(c.sink()); err != nil {
		return run, err
	}
	if run.Disclosures, err = c.listen(ctx); err != nil {
		return run, err
	}
	run.Faults, run.Lives, run.Counters = c.faults.faults, c.faults.lives, c.counters.sum
	return run, history.Save(c.options.Dir, run)
}

// writes reads the journal of the source.
func (c *cluster) writes(ctx context.Context) ([]history.Write, error) {
	journal, err := workload.Writes(ctx, c.source.url())
	all := make([]history.Write, len(journal))
	for i, w := range journal {
		all[i] = history.Write(w)
	}
	return all, err
}

// polls reads the source's log, and keeps it and that of the other server.
func (c *cluster) polls(ctx context.Context) ([]history.Poll, error) {
	data, err := c.source.folder(ctx)
	if err != nil {
		return nil, err
	}
	const name = "source.log.json"
	if err := keepLog(filepath.Join(data, pglog.FileName), c.options.Dir, name); err != nil {
		return nil, err
	}
	if c.coordination != nil {
		other, err := c.coordination.folder(ctx)
		if err == nil {
			err = keepLog(filepath.Join(filepath.Dir(other), "server.log"), c.options.Dir, "coordination.log")
		}
		if err != nil {
			return nil, err
		}
	}
	file, err := os.Open(filepath.Join(c.options.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("read the source's log: %w", err)
	}
	defer file.Close()
	return pglog.Polls(file,
		func(application string) (string, bool) {
			stream, ok := strings.CutPrefix(application, "observerd source ")
			return stream, ok
		},
		func(user string) (string, bool) {
			name, ok := strings.CutPrefix(user, role(""))
			return name, ok && c.node(name) != nil
		})
}

// readSink reads the file of the sink. A line that is torn at its end would
// mean that something was acknowledged that is not there.
func readSink(path string) ([]history.Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the sink: %w", err)
	}
	defer file.Close()
	var all []history.Event
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the sink: its last line is torn: %w", err)
		}
		e, err := events.Decode(line)
		if err != nil {
			return nil, fmt.Errorf("read the sink: %w", err)
		}
		n, shape, err := audit.Data(e.Data)
		if err != nil {
			return nil, fmt.Errorf("read the data of an event in the sink: %w", err)
		}
		all = append(all, history.Event{
			Stream: e.Stream, Seq: e.Seq, ID: e.ID.String(), Subject: e.Subject, Version: e.Version, Change: string(e.Change), N: n, Shape: shape,
		})
	}
}

func (c *cluster) meta(ctx context.Context, drained time.Duration, unhealed error) (history.Meta, error) {
	o := c.options
	server, required := c.coordination, []string(nil)
	if server == nil {
		// No answer of a file is lost.
		server, required = c.source, []string{"observerd_stale_commits_refused_total", "observerd_takeovers_total"}
	}
	postgres, err := server.shownBy(ctx, "SELECT current_setting('server_version')"+
		" || ': ' || string_agg(name || ' = ' || current_setting(name), ', ') FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes']) AS name")
	if err != nil {
		return history.Meta{}, err
	}
	settings := map[string]string{"coordination": o.Coordination, "drained": drained.Round(time.Millisecond).String()}
	if unhealed != nil {
		settings["unhealed"] = unhealed.Error()
	}
	return history.Meta{
		Seed: o.Seed, Began: c.began, Duration: o.Duration, Nodes: o.names(), Programs: c.programNames(), Streams: o.schedule(),
		Interval: o.Interval, TTL: o.TTL, Mutant: o.Mutant, Command: o.Command, Planned: c.plan.often(), Required: required,
		Versions: map[string]string{
			"Go": runtime.Version(), "PostgreSQL": postgres, "observerd": c.version(ctx),
			"machine": fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		},
		Settings: settings,
	}, nil
}

// version is what the program says of itself.
func (c *cluster) version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.options.Binary, "version").Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}
