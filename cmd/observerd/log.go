package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/jsontext/terminal"
)

// newLogger returns the logger of the program. It writes to w, which is
// stderr: stdout carries results and events alone.
func newLogger(w io.Writer, cfg config.Log, level slog.Level) *slog.Logger {
	w = terminal.AsIs(w) // Colours are for the terminal to obey.
	if cfg.Format == "tint" || cfg.Format == "auto" && terminal.Is(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly + ".000", NoColor: !terminal.Is(w), ReplaceAttr: harmless}))
	}
	return slog.New(slog.NewJSONHandler(terminal.JSON(w), &slog.HandlerOptions{Level: level, ReplaceAttr: measured}))
}

// measured gives values a unit that stands in their name: duration_ms. Times have
// milliseconds. What says nothing, a zero time or nil, is left out.
func measured(_ []string, a slog.Attr) slog.Attr {
	switch kind := a.Value.Kind(); {
	case kind == slog.KindDuration:
		return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
	case kind == slog.KindTime && a.Value.Time().IsZero(), kind == slog.KindAny && isNil(a.Value.Any()):
		return slog.Attr{}
	case kind == slog.KindTime:
		a.Value = slog.StringValue(timestamp(a.Value.Time()))
	}
	return a
}

// isNil reports whether JSON would say null.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer}, v.Kind()) && v.IsNil()
}

// harmless escapes what a terminal would obey. With colours, tint takes its own
// quotation of an escape character back, and takes those letters in a text for one.
func harmless(_ []string, a slog.Attr) slog.Attr {
	if kind := a.Value.Kind(); kind != slog.KindString && kind != slog.KindAny {
		return a
	}
	value := a.Value.Any()
	text := fmt.Sprint(value)
	shown := strings.ReplaceAll(terminal.Escaped(text), `\x1b`, `\x1B`)
	_, failure := value.(error)
	switch {
	case shown == text:
	case failure:
		a.Value = slog.AnyValue(errors.New(shown))
	default:
		a.Value = slog.StringValue(shown)
	}
	return a
}

// quietLogger is the logger of one-shot commands, whose news is their result:
// it leaves out what is below a warning, unless --log-level asks for it.
func (c *cli) quietLogger(cfg config.Log) *slog.Logger {
	level := cfg.Level
	if c.logLevel == "" {
		level = max(level, slog.LevelWarn)
	}
	return newLogger(c.stderr, cfg, level)
}

// silentLogger is the logger of a command whose result says all that it has met: it
// leaves out everything, unless --log-level asks for it.
func (c *cli) silentLogger(cfg config.Log) *slog.Logger {
	if c.logLevel == "" {
		return slog.New(slog.DiscardHandler)
	}
	return c.quietLogger(cfg)
}
