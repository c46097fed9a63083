package torture_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/test/suite/torture"
	"github.com/observerd/observerd/test/suite/torture/check"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// build makes the program with failpoints, and one that holds general locks, in a folder for
// all.
func build(t *testing.T) (o torture.Options) {
	t.Helper()
	o.Dir = t.TempDir()
	o.Binary, o.Holder = filepath.Join(o.Dir, "observerd"), filepath.Join(o.Dir, "holder")
	for _, of := range []daemon.BuildOptions{{Out: o.Binary, Tags: "failpoints"}, {Package: torture.HolderPackage, Out: o.Holder, Tags: "failpoints"}} {
		if err := daemon.Build(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestShortTorture is what `make torture` does, for a minute and with one seed.
func TestShortTorture(t *testing.T) {
	o := build(t)
	o.Seed, o.Duration, o.TTL = 1, 50*time.Second, 5*time.Second
	tortureUntilProved(t, o)
}

// tortureUntilProved makes a run, in a folder of its own below that of the options,
// until one proves something. A violation is never made up for. A run in which a
// fault found nothing to bite proves nothing: the machine was too slow for its
// length, so the next one takes twice as long.
func tortureUntilProved(t *testing.T, o torture.Options) {
	t.Helper()
	const tries = 3
	folder, length := o.Dir, o.Duration
	o.Every, o.Progress = 1500*time.Millisecond, func(format string, args ...any) { t.Logf(format, args...) }
	for try := range tries {
		o.Dir, o.Duration = filepath.Join(folder, fmt.Sprintf("run-%d-%s-%d", o.Seed, o.Coordination, try)), length<<try
		report := tortured(t, o)
		t.Log(report)
		switch report.Verdict() {
		case check.Passed:
			return
		case check.Failed:
			t.Fatal("the run has failed")
		case check.Void:
			t.Logf("the run proves nothing: %s", strings.Join(report.Void, "; "))
		}
	}
	t.Errorf("none of %d runs, the last of them of %s, has proved anything", tries, length<<(tries-1))
}

func tortured(t *testing.T, o torture.Options) check.Report {
	t.Helper()
	out, err := torture.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if out.Unhealed != nil {
		t.Error(out.Unhealed)
	}
	return check.Check(out.History)
}

// TestInterruptedRunLeavesNothing ends a run in the middle of its faults. That
// no goroutine is left is seen by TestMain.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	o := build(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	faults := 0
	o.Seed, o.Duration, o.Every, o.Dir = 1, time.Hour, 200*time.Millisecond, filepath.Join(o.Dir, "interrupted")
	o.Faults = []string{"stop", "black-hole", "slow", "pause", "stop-in-commit", "cut"}
	o.Progress = func(format string, _ ...any) {
		if strings.Contains(format, "bit:") {
			if faults++; faults == 2 {
				cancel()
			}
		}
	}
	_, err := torture.Run(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	for _, pid := range livingIn(t, o.Dir) {
		t.Errorf("process %s is left", pid)
	}
}

// livingIn are the processes that work in a folder.
func livingIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}
