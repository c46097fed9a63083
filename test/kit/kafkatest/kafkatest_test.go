//go:build nightly

package kafkatest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/test/kit/kafkatest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

func TestServer(t *testing.T) {
	t.Parallel()
	s := kafkatest.Start(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s.Kill(t)
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a broker that was killed answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
