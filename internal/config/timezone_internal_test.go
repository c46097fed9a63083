package config

import (
	"strings"
	"testing"
	"time"
)

func TestNearestZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Berln": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "Berlin": "Europe/Berlin", "America/Berlin": "Europe/Berlin",
		"Europe/Istambul": "Europe/Istanbul", "Asia/istambul": "Europe/Istanbul", "America/New York": "America/New_York", "utc": "UTC",
		"America/Argentina/Buenos_Airs": "America/Argentina/Buenos_Aires", "Arctic/Longyearben": "Arctic/Longyearbyen",
		"Europe/Wien": "", "MSK": "", "rome": "Europe/Rome", "CEST": "", "UTC+1": "", "+02:00": "", "Local": "", "": "",
	} {
		if got := nearestZone(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// What is suggested is accepted.
func TestZonesExist(t *testing.T) {
	t.Parallel()
	n := 0
	for zone := range strings.Lines(zoneNames) {
		n++
		if _, err := time.LoadLocation(strings.TrimSpace(zone)); err != nil {
			t.Error(err)
		}
	}
	if n < 400 {
		t.Errorf("only %d zones", n)
	}
}
