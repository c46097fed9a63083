package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
)

// metric returns a series of the node, by a pattern of its name and labels.
func metric(t *testing.T, node *app.App, series string) (value float64, found bool) {
	t.Helper()
	_, text := get(t, node, "/metrics")
	m := regexp.MustCompile(`(?m)^` + series + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value, true
}

// atLeast complains while a series is below that.
func atLeast(t *testing.T, node *app.App, series string, least float64) func() error {
	return func() error {
		if got, found := metric(t, node, series); !found || got < least {
			return fmt.Errorf("%s is %v (found: %t), want %v or more", series, got, found, least)
		}
		return nil
	}
}

const (
	logged    = `observerd_event_log_latency_seconds_count\{type="order"\}`
	delivered = `observerd_relay_delivery_latency_seconds_count\{sink="file",type="order"\}`
	waits     = `observerd_relay_lag_seconds\{sink="file",stream="orders"\}`
)

// TestLatencies compares the histograms with the events that count.
func TestLatencies(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		p.write(t, `INSERT INTO orders VALUES ('HISTORY', 'c', 'NEW', 1, strftime('%Y-%m-%d %H:%M:%f', 'now', '-400 days'))`)
		node := p.start(t)
		eventually(t, p.orderStored(t, "HISTORY"))
		eventually(t, atLeast(t, node, `observerd_observer_freshness_seconds\{observer="orders",type="order"\}`, 0))
		p.order(t, "NOW")
		p.write(t, `INSERT INTO orders VALUES ('BUSINESS', 'c', 'NEW', 1, strftime('%Y-%m-%d 00:00:00.000', 'now', '+1 day'))`)
		eventually(t, p.orderStored(t, "NOW"))
		eventually(t, p.orderStored(t, "BUSINESS"))
		counted := -1.0 // BUSINESS
		for _, e := range p.stored(t)["orders"] {
			if !e.Snapshot {
				counted++
			}
		}
		for _, series := range []string{logged, delivered} {
			eventually(t, atLeast(t, node, series, counted)) // The sink's file comes before its offset.
			if got, _ := metric(t, node, series); got != counted {
				t.Errorf("%s is %v, want %v", series, got, counted)
			}
			if got, _ := metric(t, node, strings.Replace(series, "_count", "_sum", 1)); got > counted*patience.Seconds() {
				t.Errorf("the latencies of %s are %v seconds in all", series, got)
			}
		}
		if got, _ := metric(t, node, `observerd_events_written_total\{observer="orders",type="order"\}`); got < 3 {
			t.Errorf("%v events of orders were written, want 3 or more", got)
		}
	})
}

// TestLagOfARelayThatStandsStill has a sink that takes nothing more, the node's restart,
// and another node that takes over.
func TestLagOfARelayThatStandsStill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		first := p.start(t)
		p.order(t, "BEFORE")
		eventually(t, p.orderStored(t, "BEFORE"))
		eventually(t, func() error {
			if got, found := metric(t, first, waits); !found || got != 0 {
				return fmt.Errorf("with all events delivered the lag is %v (found: %t)", got, found)
			}
			return nil
		})
		path := filepath.Join(p.folder, "events.jsonl")
		if err := os.Rename(path, path+".kept"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		p.order(t, "AFTER")
		eventually(t, atLeast(t, first, waits, 3))
		before, _ := metric(t, first, waits)
		stop(t, first)
		second := p.start(t)
		eventually(t, atLeast(t, second, waits, before))
		third := p.start(t)
		eventually(t, atLeast(t, third, `observerd_live_nodes`, 2))
		if got, found := metric(t, third, waits); found && got < before {
			t.Errorf("a node that follows shows a lag of %v", got)
		}
		stop(t, second)
		eventually(t, atLeast(t, third, waits, before))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if got, found := metric(t, third, waits); !found || got != 0 {
				return fmt.Errorf("after all was delivered the lag is %v (found: %t)", got, found)
			}
			return nil
		})
	})
}

// TestMetricsOfARemovedObserver begins a node anew in the process, as a reload does.
func TestMetricsOfARemovedObserver(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	o := p.options()
	o.Reloads = app.NewReloads()
	node := launch(t, o)
	const events = `observerd_events_written_total\{observer="stock",type="inventory"\}`
	eventually(t, atLeast(t, node, events, 1))
	eventually(t, atLeast(t, node, `observerd_observer_freshness_seconds\{observer="stock",type="inventory"\}`, 0))
	eventually(t, func() error {
		if got, found := metric(t, node, `observerd_relay_lag_events\{sink="file",stream="stock"\}`); !found || got != 0 {
			return fmt.Errorf("%v events of stock wait (found: %t)", got, found)
		}
		return nil
	})
	stop(t, node)
	kept := *p.config
	kept.Observers = []config.Observer{p.config.Observers[0], p.config.Observers[2]}
	o.Config = &kept
	node = launch(t, o)
	eventually(t, atLeast(t, node, waits, 0))
	eventually(t, atLeast(t, node, `observerd_observer_freshness_seconds\{observer="orders",type="order"\}`, 0))
	if _, text := get(t, node, "/metrics"); strings.Contains(text, `"stock"`) {
		t.Errorf("the metrics have the observer that was removed:\n%s", strings.Join(regexp.MustCompile(`(?m)^.*"stock".*$`).FindAllString(text, -1), "\n"))
	}
}
