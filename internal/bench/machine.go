package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// circumstances are what somebody needs to know to measure again.
func circumstances(ctx context.Context, s *suite) ([]circumstance, error) {
	var server, settings string
	err := s.cluster.conn.QueryRow(ctx, `
		SELECT current_setting('server_version'),
		       string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
		  FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size']) AS name`,
	).Scan(&server, &settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the server: %w", err)
	}
	return []circumstance{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"machine", fmt.Sprintf("%s, %d cores, %s/%s; client and server together on it", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"PostgreSQL", server + ": " + settings},
		{"method", fmt.Sprintf("%d rounds in turns, %d where sources are read, medians", s.rounds, s.sourceRounds)},
		{"command", "`" + command() + "`"},
	}, nil
}

// command is how to measure again.
func command() string {
	if len(os.Args) < 2 {
		return "make bench"
	}
	return "make bench BENCHFLAGS='" + strings.Join(os.Args[1:], " ") + "'"
}

// processor is the name of the CPU, where the kernel tells it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
