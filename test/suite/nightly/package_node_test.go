//go:build nightly

package nightly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// sampleFile is the source that the installed nodes observe.
const (
	sampleFile = stateDir + "/shop.db"
	sampleURL  = "url: sqlite:" + sampleFile
)

// observing returns the packaged configuration with a source and an observer, as
// somebody would write them in.
func observing(t *testing.T, packaged, url string) string {
	t.Helper()
	for _, change := range [][2]string{
		{"fixed-delay: 30s", "fixed-delay: 1s"},
		{"sources: {}", "sources:\n  shop:\n    " + url + "\n    timezone: UTC"},
		{"observers: []", "observers:\n  - {id: shop-orders, type: order, source: shop, table: orders, key: order_id, " +
			"timestamp: updated_at, overlap: 1s}"},
	} {
		if strings.Count(packaged, change[0]) != 1 {
			t.Fatalf("the packaged configuration has not one %q:\n%s", change[0], packaged)
		}
		packaged = strings.Replace(packaged, change[0], change[1], 1)
	}
	return packaged
}

// feed makes orders in the source.
func feed(t *testing.T, d system, steps int) {
	t.Helper()
	d.do(t, "runuser", "-u", "observerd", "--", "observerd", "sample", "--path", sampleFile, "--steps", strconv.Itoa(steps))
}

// moreEvents waits for events behind those that were there, and returns all.
// None of them may be there twice.
func moreEvents(t *testing.T, d system, before string) (all string) {
	t.Helper()
	until(t, "more events", func() error {
		if !d.has(t, eventsFile) { // The sink makes it with the first one.
			return errors.New("there are none yet")
		}
		all = d.read(t, eventsFile)
		if len(all) <= len(before) || !strings.HasSuffix(all, "\n") {
			return fmt.Errorf("there are %d bytes, and were %d", len(all), len(before))
		}
		return nil
	})
	if !strings.HasPrefix(all, before) {
		t.Errorf("earlier events have changed:\n%s\nwere\n%s", all, before)
	}
	ids := make(map[string]bool)
	for line := range strings.Lines(all) {
		var event struct{ ID string }
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.ID == "" {
			t.Fatalf("%v in event %s", err, line)
		}
		if ids[event.ID] {
			t.Errorf("event twice: %s", line)
		}
		ids[event.ID] = true
	}
	return all
}

// runNode runs the installed daemon as its user, without a service manager, until
// stop is called. It returns when the node is healthy.
func runNode(t *testing.T, d system) (stop func()) {
	t.Helper()
	const socket = "OBSERVERD_HTTP_SOCKET=" + stateDir + "/http.sock"
	ctx, cancel := context.WithCancel(t.Context())
	// No network of its own: the port of the configuration is somebody else's here.
	cmd := d.command(ctx, "setpriv", "--reuid=observerd", "--regid=observerd", "--clear-groups",
		"env", socket, "OBSERVERD_HTTP_LISTEN=", "observerd", "run", "--config", configFile)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = soon
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() {
		t.Helper()
		cancel()
		// A command that ends well after its context was cancelled still reports that.
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the node did not end well: %v\n%s", err, log.String())
		}
		ended <- nil
	}
	t.Cleanup(stop)
	until(t, "the node to be healthy", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the node has ended: %v\n%s", err, log.String())
		default:
		}
		_, err := d.try(t, "env", socket, "observerd", "healthcheck", "--ready", "--config", configFile)
		return err
	})
	return stop
}
