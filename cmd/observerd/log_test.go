package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
)

// TestTheLogOfMachines has values of each kind whose text would need a unit, or says nothing.
func TestTheLogOfMachines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newLogger(&out, config.Log{Format: "json"}, slog.LevelInfo)
	at := time.Date(2026, 3, 29, 3, 30, 0, 123456789, time.FixedZone("CEST", 7200))
	log.Info("m", "duration", 1234567*time.Nanosecond, "lag", -90*time.Second, "tick", at, "whole", at.Truncate(time.Second), "never", time.Time{}, "err", nil, "none", []string(nil), "rows", 3)
	_, got, _ := bytes.Cut(out.Bytes(), []byte(`"msg"`))
	const want = `:"m","duration_ms":1.234,"lag_ms":-90000,"tick":"2026-03-29T01:30:00.123Z","whole":"2026-03-29T01:30:00.000Z","rows":3}` + "\n"
	if string(got) != want {
		t.Errorf("got  %swant %s", got, want)
	}
}
