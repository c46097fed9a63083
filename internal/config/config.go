package config

import "log/slog"

// Config is the whole configuration. It prints, logs and marshals without its
// secrets.
type Config struct {
	Node      Node              `key:"node"`
	Database  Database          `key:"database"`
	Scheduler Scheduler         `key:"scheduler"`
	Sources   map[string]Source `key:"sources"`
	// Observers and Sinks are in the order of the file.
	Observers []Observer `key:"observers"`
	Sinks     []Sink     `key:"sinks"`
	HTTP      HTTP       `key:"http"`
	Log       Log        `key:"log"`
}

// Node is this process among its equals.
type Node struct {
	// Name is a label for people, at most 100 characters; nothing depends on
	// its being unique. Default: the host's name.
	Name string `key:"name" shown:"the host's name" unit:"text"`
}

// HTTP is the status page with its health checks and metrics.
type HTTP struct {
	// Listen is the address, as host:port; no host means every interface,
	// port 0 a free one. Empty switches it off. Default: 127.0.0.1:8080.
	Listen string `key:"listen" default:"127.0.0.1:8080" unit:"host:port"`
}

// Log is what goes to stderr.
type Log struct {
	// Level is the least level that is written. Default: info.
	Level string `key:"level" default:"info" oneof:"debug|info|warn|error"`
	// Format is tint (coloured lines), json, or auto, which is tint on a
	// terminal and json elsewhere. Default: auto.
	Format string `key:"format" default:"auto" oneof:"auto|tint|json"`
}

// SlogLevel is the level for a slog handler.
func (l Log) SlogLevel() slog.Level {
	switch l.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
