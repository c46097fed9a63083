package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/observerd/observerd/test/kit/testbed"
)

// commit is what the command was built from. The Makefile sets it.
var commit = "unknown"

// busy is the share of the CPU that is too much for other work to take.
const busy = 0.05

// circumstances are what somebody needs to know to measure again, and to judge
// whether the machine was quiet.
func circumstances(ctx context.Context, s *suite) ([]circumstance, error) {
	others, err := s.otherWork(ctx)
	if err != nil {
		return nil, err
	}
	var server, settings string
	err = s.cluster.conn.QueryRow(ctx, `
		SELECT current_setting('server_version'),
		       string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
		  FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size']) AS name`,
	).Scan(&server, &settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the server: %w", err)
	}
	return []circumstance{
		{"date", say("%s", words{time.Now().UTC().Format(time.DateOnly)})},
		{"commit", say("%s", words{commit})},
		{"machine", say("%s", words{fmt.Sprintf("%s, %d cores, %s/%s; client and server together on it", testbed.Processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)})},
		{"other work on it", others},
		{"Go", say("%s", words{strings.TrimPrefix(runtime.Version(), "go")})},
		{"PostgreSQL", say("%s", words{server + ": " + settings})},
		{"runs", say("%s; a range is from the lowest to the highest of them, and each ratio is of one run", count(1))},
		{"method", say("%s", words{fmt.Sprintf("%d rounds in turns, %d where sources are read, medians", s.rounds, s.sourceRounds)})},
		{"command", say("%s", words{"`" + command() + "`"})},
	}, nil
}

// otherWork listens to the machine before a run begins, when nothing of ours
// works: whatever keeps the CPU busy then will do so later, too. What a hypervisor
// gives to others counts.
func (s *suite) otherWork(ctx context.Context) (phrase, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return phrase{}, fmt.Errorf("look for other work: %w", err)
	}
	before, err := proc.Stat()
	if err != nil {
		return phrase{}, fmt.Errorf("look for other work: %w", err)
	}
	select {
	case <-time.After(s.listen):
	case <-ctx.Done():
		return phrase{}, context.Cause(ctx)
	}
	after, err := proc.Stat()
	if err != nil {
		return phrase{}, fmt.Errorf("look for other work: %w", err)
	}
	share := workBetween(before.CPUTotal, after.CPUTotal)
	if share > busy {
		s.progress("the machine is busy: other work takes %.0f%% of its CPU; measure again on a quiet one", 100*share)
	}
	return say("%s%% of the CPU in the %s s before each run%s", whole(100*share), decimal(s.listen.Seconds(), 1), busyWords(share)), nil
}

// busyWords are none of a quiet machine.
func busyWords(share float64) words {
	if share <= busy {
		return nil
	}
	return words{": **the machine was busy, so measure again**"}
}

// workBetween is the share of the CPU that was not idle.
func workBetween(before, after procfs.CPUStat) float64 {
	idle := after.Idle + after.Iowait - before.Idle - before.Iowait
	worked := after.User + after.Nice + after.System + after.IRQ + after.SoftIRQ + after.Steal -
		before.User - before.Nice - before.System - before.IRQ - before.SoftIRQ - before.Steal
	if worked <= 0 {
		return 0
	}
	return worked / (worked + max(0, idle))
}

// command is how to measure again.
func command() string {
	if len(os.Args) < 2 {
		return "make bench"
	}
	return "make bench BENCHFLAGS='" + strings.Join(os.Args[1:], " ") + "'"
}
