package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is what a node's configuration says. It is written as text: the
// program is to read what its users write.
type Config struct {
	// Node is the node's name.
	Node string
	// Database is the URL of the coordination database.
	Database string
	// Sources are URLs by name.
	Sources map[string]string
	// Access are more settings of each source, such as "password-file: password".
	Access string
	// QueryTimeout is how long a source may keep silent; 0 leaves it to the
	// program.
	QueryTimeout time.Duration
	// Observers are entries of the list of that name, each a mapping as YAML
	// writes it in one line: {id: orders, type: order, …}.
	Observers []string
	// Files are the paths of file sinks by id.
	Files map[string]string
	// Sinks are entries of the list of that name beside Files, as Observers.
	Sinks []string
	// Interval is that of all types, TTL that of their locks. 0 means 1 s and
	// 15 s.
	Interval, TTL time.Duration
	// KeyFormat is that of the keys of locks; empty leaves it to the program.
	KeyFormat string
	// Shutdown is how long a poll may take to finish at a stop; 0 means 8 s.
	Shutdown time.Duration
	// LogLevel is "debug" unless it says otherwise.
	LogLevel string
	// Disabled nodes take no turn.
	Disabled bool
}

// Write writes config.yaml into a folder, which it makes. It holds passwords if
// the URLs do, so that this user alone may read it: the program refuses to read
// passwords that everybody may read.
func (c Config) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // Users without rights look at it too.
		return fmt.Errorf("make the folder of node %s: %w", c.Node, err)
	}
	path := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(path, []byte(c.text()), 0o600); err != nil {
		return fmt.Errorf("write the configuration of node %s: %w", c.Node, err)
	}
	return nil
}

func (c Config) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: {name: %q}\n", c.Node)
	fmt.Fprintf(&b, "database: {url: %q}\n", c.Database)
	keys := ""
	if c.KeyFormat != "" {
		keys = ", key-format: " + c.KeyFormat
	}
	fmt.Fprintf(&b, "scheduler: {observer: {enabled: %t, fixed-delay: %s, shutdown-timeout: %s, lock: {ttl: %s, wait: 1s%s}}}\n",
		!c.Disabled, cmp.Or(c.Interval, time.Second), cmp.Or(c.Shutdown, 8*time.Second), cmp.Or(c.TTL, 15*time.Second), keys)
	more := ""
	if c.QueryTimeout > 0 {
		more = fmt.Sprintf(", query-timeout: %s", c.QueryTimeout)
	}
	if c.Access != "" {
		more += ", " + c.Access
	}
	b.WriteString("sources:\n")
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		fmt.Fprintf(&b, "  %s: {url: %q%s}\n", name, c.Sources[name], more)
	}
	b.WriteString("observers:\n")
	for _, o := range c.Observers {
		fmt.Fprintf(&b, "  - %s\n", o)
	}
	b.WriteString("sinks:\n")
	for _, id := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(&b, "  - {id: %s, type: file, path: %q, create-folder: true}\n", id, c.Files[id])
	}
	for _, s := range c.Sinks {
		fmt.Fprintf(&b, "  - %s\n", s)
	}
	fmt.Fprintf(&b, "http: {listen: \"127.0.0.1:0\"}\nlog: {level: %s, format: json}\n", cmp.Or(c.LogLevel, "debug"))
	return b.String()
}
