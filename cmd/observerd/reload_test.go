package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestTheTimeOfAReload holds the time that the command waits between what a node
// may take and what the unit allows.
func TestTheTimeOfAReload(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/observerd.service")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(unit), "\nTimeoutStartSec=")
	text, _, _ := strings.Cut(rest, "\n")
	allowed, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds()})
	if err != nil {
		t.Fatal(err)
	}
	if takes := readTimeout + cfg.Scheduler.ShutdownTimeout + stopGrace; reloadTimeout <= takes || reloadTimeout >= allowed {
		t.Errorf("the command waits %s; a node may take %s, and systemd allows %s", reloadTimeout, takes, allowed)
	}
}
