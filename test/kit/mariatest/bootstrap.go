package mariatest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// initialise makes the data folder.
func (s *Server) initialise(ctx context.Context) error {
	input, err := s.programs.script()
	if err != nil {
		return err
	}
	cmd := s.command(ctx, s.arguments(map[string]string{"bootstrap": ""})...)
	cmd.Stdin = input
	if err := s.Dir.Prepare(cmd); err != nil {
		return fmt.Errorf("make the system tables: %w", err)
	}
	return nil
}

// script is what a server without tables reads to make them. The owner needs
// no password; the accounts that tests make do, as they would elsewhere.
func (p programs) script() (io.Reader, error) {
	parts := []io.Reader{strings.NewReader("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n")}
	for _, path := range p.tables {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the system tables: %w", err)
		}
		parts = append(parts, bytes.NewReader(text))
	}
	return io.MultiReader(parts...), nil
}

// arguments are small where tests need little, and careless where nobody will
// ever read the data again.
func (s *Server) arguments(more map[string]string) []string {
	settings := map[string]string{
		"datadir":                        s.Dir.Data(),
		"tmpdir":                         s.Dir.Data(), // Servers would meet in a common one.
		"port":                           strconv.Itoa(s.Port),
		"bind-address":                   "127.0.0.1",
		"socket":                         "server.sock", // In the data folder: a long path is no socket's.
		"pid-file":                       "server.pid",
		"default-time-zone":              "+00:00",
		"max-connections":                "500",
		"character-set-server":           "utf8mb4",
		"innodb-buffer-pool-size":        "32M",
		"innodb-log-file-size":           "8M",
		"innodb-flush-log-at-trx-commit": "0",
		"innodb-doublewrite":             "OFF",
		"innodb-use-native-aio":          "OFF", // Not every container may.
		"innodb-flush-method":            "nosync",
		"performance-schema":             "OFF",
		"skip-log-bin":                   "",
		"skip-name-resolve":              "",
	}
	maps.Copy(settings, more)
	args := []string{"--no-defaults"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arg := "--" + name
		if value := settings[name]; value != "" {
			arg += "=" + value
		}
		args = append(args, arg)
	}
	return args
}
