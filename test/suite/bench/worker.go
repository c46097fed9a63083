package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// workerCommand is the hidden subcommand that does one job. Each side of the
// backlog runs in a process of its own, so that its peak of memory is its own
// and no garbage of another round slows it down.
const workerCommand = "worker"

// job is what a worker is asked for, as JSON on its standard input.
type job struct {
	Kind string
	// Source and Database are URLs. Where the poll of a source has no
	// database, it keeps nothing.
	Source, Database string
	// Chunk is how many rows commit together, and StatementTime how long a statement
	// hands over rows; 0 means the default of a poll.
	Chunk         int
	StatementTime time.Duration
	// Origin is the kind of the source, Table what is read of it, and Detect
	// how, where a job is about sources; empty is [observer.DetectNew].
	Origin, Table string
	Detect        observer.Detect
	// Folder holds the pre-encoded rows of the bare COPY.
	Folder string
	// Profile is where profiles go; empty for none. Name begins their names.
	Profile, Name string
}

// outcome is what a worker has measured.
type outcome struct {
	Rows    int64
	Seconds float64
	// CPU is the worker's own in these seconds, not the server's.
	CPU float64
	// Peak is the highest resident memory of the process, in bytes.
	Peak int64
}

func (o outcome) rate() float64 { return float64(o.Rows) / o.Seconds }

// perRow is the CPU of a row in microseconds.
func (o outcome) perRow() float64 { return o.CPU / float64(o.Rows) * 1e6 }

// do runs a job in a process of its own.
func (s *suite) do(ctx context.Context, j job) (outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	j.Profile = s.profile
	input, err := json.Marshal(j)
	if err != nil {
		return outcome{}, err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, self, workerCommand)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &output, s.stderr
	if err := cmd.Run(); err != nil {
		return outcome{}, fmt.Errorf("%s in a process of its own: %w", j.Kind, err)
	}
	var o outcome
	if err := json.Unmarshal(output.Bytes(), &o); err != nil {
		return outcome{}, fmt.Errorf("read the answer of %s: %w", j.Kind, err)
	}
	return o, nil
}

// work is the worker's side.
func work(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var j job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	doing, known := map[string]func(context.Context, job, *stopwatch) (int64, error){
		"poll": pollSource, "loop": loopBacklog, "copy": copyBacklog, "bare loop": loopSource, "hash diff": diffOrders,
	}[j.Kind]
	if !known {
		return fmt.Errorf("no job is named %q", j.Kind)
	}
	finish, err := startProfile(j.Profile, j.Name)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	var watch stopwatch
	rows, err := doing(ctx, j, &watch)
	if err != nil {
		return fmt.Errorf("%s: %w", j.Kind, err)
	}
	if err := finish(); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(outcome{Rows: rows, Seconds: watch.took.Seconds(), CPU: watch.used.Seconds(), Peak: peak})
}

// stopwatch takes the time and the CPU of a job, and leaves out what it prepares.
type stopwatch struct {
	began      time.Time
	before     time.Duration
	took, used time.Duration
	// look, if set, is called when the watch starts and when it stops.
	look func()
}

func (w *stopwatch) start() {
	if w.look != nil {
		w.look()
	}
	w.began, w.before = time.Now(), cpuTime()
}

func (w *stopwatch) stop() {
	w.took, w.used = time.Since(w.began), cpuTime()-w.before
	if w.look != nil {
		w.look()
	}
}
