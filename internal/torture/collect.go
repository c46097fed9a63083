package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/torture/audit"
	"github.com/observerd/observerd/internal/torture/history"
	"github.com/observerd/observerd/internal/torture/pglog"
	"github.com/observerd/observerd/internal/torture/shop"
)

// collect reads what happened from everybody who saw it, and saves it.
func (c *cluster) collect(ctx context.Context, drained time.Duration, unhealed error) (run history.Run, err error) {
	if run.Meta, err = c.meta(ctx, drained, unhealed); err != nil {
		return run, err
	}
	isNode := func(name string) bool { return c.node(name) != nil }
	if err := audit.Collect(ctx, c.coordination.url(), isNode, &run); err != nil {
		return run, err
	}
	if run.Writes, err = shop.Writes(ctx, c.source.url()); err != nil {
		return run, err
	}
	if run.Polls, err = c.polls(ctx); err != nil {
		return run, err
	}
	delivered, err := readSink(c.sink())
	if err != nil {
		return run, err
	}
	run.Delivered = map[string][]history.Event{sinkID: delivered}
	run.Faults, run.Lives, run.Counters = c.faults.faults, c.faults.lives, c.counters.sum
	return run, history.Save(c.options.Dir, run)
}

// polls reads the source's log, and keeps it and that of the other server.
func (c *cluster) polls(ctx context.Context) ([]history.Poll, error) {
	data, err := c.source.folder(ctx)
	if err != nil {
		return nil, err
	}
	other, err := c.coordination.folder(ctx)
	if err != nil {
		return nil, err
	}
	const name = "source.log.json"
	err = errors.Join(
		keepLog(filepath.Join(data, pglog.FileName), c.options.Dir, name),
		keepLog(filepath.Join(filepath.Dir(other), "server.log"), c.options.Dir, "coordination.log"))
	if err != nil {
		return nil, err
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
		n, shape, err := read(e.Data)
		if err != nil {
			return nil, fmt.Errorf("read the data of an event in the sink: %w", err)
		}
		all = append(all, history.Event{
			Stream: e.Stream, Seq: e.Seq, ID: e.ID.String(), Subject: e.Subject, Version: e.Version, Change: string(e.Change), N: n, Shape: shape,
		})
	}
}

// read returns the version of the row that is in the data of an event, and the
// names of its columns.
func read(data json.RawMessage) (n int64, shape string, err error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(data, &columns); err != nil {
		return 0, "", err
	}
	if text, ok := columns["n"]; ok {
		err = json.Unmarshal(text, &n)
	}
	return n, strings.Join(slices.Sorted(maps.Keys(columns)), ","), err
}

// serverSettings are those on which the promises depend.
var serverSettings = []string{"fsync", "synchronous_commit", "full_page_writes"}

func (c *cluster) meta(ctx context.Context, drained time.Duration, unhealed error) (history.Meta, error) {
	version, err := c.coordination.shown(ctx, "server_version")
	if err != nil {
		return history.Meta{}, err
	}
	settings, err := c.coordination.shown(ctx, serverSettings...)
	if err != nil {
		return history.Meta{}, err
	}
	o := c.options
	settings["chunk-size"] = fmt.Sprint(chunks)
	if o.ChunkRows > 0 {
		settings["chunk-size"] = fmt.Sprint(o.ChunkRows)
	}
	settings["drained"] = drained.Round(time.Millisecond).String()
	if unhealed != nil {
		settings["unhealed"] = unhealed.Error()
	}
	return history.Meta{
		Seed: o.Seed, Began: c.began, Duration: o.Duration, Nodes: c.plan.Nodes, Streams: schedule(),
		Interval: o.Interval, TTL: o.TTL, Mutant: o.Mutant, Command: o.Command, Planned: c.plan.often(),
		Versions: map[string]string{
			"Go": runtime.Version(), "PostgreSQL": version["server_version"], "observerd": c.version(ctx),
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
