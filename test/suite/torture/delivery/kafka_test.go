//go:build nightly

package delivery

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/test/kit/kafkatest"
	"github.com/observerd/observerd/test/kit/netfault"
)

// broker is a target of type kafka. Kafka's own client, in Java, is its consumer.
type broker struct{ *kafkatest.Server }

func (b broker) ways(t *testing.T, n int) []*netfault.Proxy {
	t.Helper()
	return b.Before(t, n)
}

func (broker) entry(way *netfault.Proxy) string {
	return fmt.Sprintf("{id: %s, type: kafka, brokers: [%q], topic: '{{.Stream}}', create: true, partitions: 1, compression: none, batch-size: 50}", sinkID, way.Addr())
}

// carries is a request that writes events, one time of two, or that ends a transaction.
func (broker) carries(piece []byte) bool {
	if len(piece) < 8 {
		return false
	}
	switch binary.BigEndian.Uint16(piece[4:]) {
	case uint16(kmsg.Produce):
		return bytes.Contains(piece, []byte("Event")) && rand.N(2) == 0
	case uint16(kmsg.EndTxn):
		return true
	}
	return false
}

func (b broker) kill(ctx context.Context) error  { return b.Stop(ctx, syscall.SIGKILL) }
func (b broker) start(ctx context.Context) error { return b.Restart(ctx) }

func (b broker) consumed(ctx context.Context) (all []seen, err error) {
	for _, stream := range streams {
		records, err := b.Read(ctx, stream)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			e, err := kafkatest.Decode(r)
			if err != nil {
				return nil, err
			}
			all = append(all, seen{e.Stream, e.Seq, e.ID.String(), e.Subject})
		}
	}
	return all, nil
}

func (b broker) backUp(ctx context.Context) error {
	return b.copied(ctx, b.Folder(), b.Folder()+".backup")
}
func (b broker) restore(ctx context.Context) error {
	return b.copied(ctx, b.Folder()+".backup", b.Folder())
}

// copied copies what the broker has stored while it does not run.
func (b broker) copied(ctx context.Context, from, to string) error {
	return errors.Join(b.Stop(ctx, syscall.SIGTERM), os.RemoveAll(to), exec.CommandContext(ctx, "cp", "-a", from, to).Run(), b.Restart(ctx))
}

func TestKafkaUnderAllFaults(t *testing.T) { story(t, broker{kafkatest.Start(t)}, byStream, once) }
