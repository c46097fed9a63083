package postgres_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestCloseDoesNotWaitForAServerThatIsGone breaks off a read whose server has
// gone away without a word. The driver would wait for it for 15 seconds.
func TestCloseDoesNotWaitForAServerThatIsGone(t *testing.T) {
	t.Parallel()
	proxied, proxy := netfault.StartBefore(t, pgtest.New(t))
	s, err := postgres.Open(postgres.Options{URL: proxied})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Read(t.Context(), observer.Query{
		Stream: "orders", SQL: "SELECT i, repeat('x', 1000) AS text FROM generate_series(1, 1000000) AS i", Key: []string{"i"},
	}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	proxy.SetImpairment(netfault.BlackHole())
	began := time.Now()
	if err := rows.Close(); err != nil {
		t.Log("the read ended with", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the end took %s", took)
	}
	if proxy.Stats().Swallowed == 0 {
		t.Error("nothing was lost: the test proves nothing")
	}
}
