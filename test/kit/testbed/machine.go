package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Circumstance is something that figures depend on.
type Circumstance struct{ What, Value string }

// Circumstances are what somebody needs to know to measure again. command is
// how.
func (b *Testbed) Circumstances(ctx context.Context, command string) ([]Circumstance, error) {
	conn, err := pgx.Connect(ctx, b.URL("postgres"))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version, settings string
	err = conn.QueryRow(ctx, `
		SELECT current_setting('server_version'),
		       string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
		  FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers']) AS name`,
	).Scan(&version, &settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the server: %w", err)
	}
	return []Circumstance{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"machine", fmt.Sprintf("%s, %d cores, %s/%s; nodes and server together on it", Processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"PostgreSQL", version + ": " + settings},
		{"command", "`" + command + "`"},
	}, nil
}

// Processor is the name of the CPU, where the kernel tells it.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(value))
		}
	}
	return "unknown processor"
}

// List is a Markdown list of circumstances.
func List(all []Circumstance) []byte {
	var b bytes.Buffer
	for _, c := range all {
		fmt.Fprintf(&b, "- %s: %s\n", c.What, c.Value)
	}
	b.WriteByte('\n')
	return b.Bytes()
}
