package sinks_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/test/kit/daemon"
)

// TestExampleReadsWhatWasCommitted starts examples/kafka-consumer beside a sink whose batch is
// aborted in between.
func TestExampleReadsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := open(t, options(t, c))
	batch := sinktest.Batch("orders", 1, 4)
	deliver(t, s, batch[:2])
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: positions, Err: kerr.InvalidRecord})
	if _, err := s.Deliver(t.Context(), batch[2:]); err == nil {
		t.Fatal("the batch is not refused")
	}
	deliver(t, open(t, options(t, c)), batch[2:])
	binary := filepath.Join(t.TempDir(), "kafka-consumer")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Package: "github.com/observerd/observerd/examples/kafka-consumer", Out: binary}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-brokers", c.ListenAddrs()[0], "-topics", "events", "-group", "billing")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var failure strings.Builder
	cmd.Stderr = &failure
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for i := range batch {
		want := batch[i].ID.String() + " NewOrderObservedEvent"
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) || !strings.HasSuffix(lines.Text(), string(batch[i].Data)) {
			t.Errorf("line %d is %q, want %s …: %s", i, lines.Text(), want, &failure)
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("there is more: %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &failure)
	}
}
