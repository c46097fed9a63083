package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"github.com/observerd/observerd/internal/config"
)

// newLogger returns the logger of the program. It writes to w, which is
// stderr: stdout carries results and events alone.
func newLogger(w io.Writer, cfg config.Log, level slog.Level) *slog.Logger {
	if cfg.Format == "tint" || cfg.Format == "auto" && isTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly + ".000", NoColor: !isTerminal(w)}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// quietLogger is the logger of one-shot commands, whose news is their result:
// it leaves out what is below a warning, unless --log-level asks for it.
func (c *cli) quietLogger(cfg config.Log) *slog.Logger {
	level := cfg.SlogLevel()
	if c.logLevel == "" {
		level = max(level, slog.LevelWarn)
	}
	return newLogger(c.stderr, cfg, level)
}

// isTerminal tells whether a person looks at the stream, or types into it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}
